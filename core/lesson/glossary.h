// The terms of the field, and which controls they explain: assets/glossary.json.
//
//   {"terms": [{"id": "amax", "term": "amax", "also": "absolute maximum", "text": "The largest ...",
//               "why": "One outlier ...", "source": "...", "related": ["scale"],
//               "explains": ["window.zero", "*.seed"]}],
//    "controls": [{"control": "delayed.play", "label": "Play", "help": "Runs ...", "term": "step"}]}
//
// `explains` lists fields: "<lab>.<field>", or "*.<field>" for labs without an entry of their own. `controls`
// lists controls that are not fields.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fp8lab {

struct Term {
    std::string id, term;
    std::string also;    // other names, searched and not shown
    std::string text;    // what it is, 1-3 sentences
    std::string why;     // why it matters; may be empty
    std::string source;  // of the numbers in the text; may be empty
    std::vector<std::string> related;
    std::vector<std::string> explains;
};

struct ControlNote {
    std::string control, label, help;
    std::string term;  // id; may be empty
};

class Glossary {
  public:
    Glossary() = default;
    // Throws input_error with the entry: a missing or unknown key, a repeated id, a link to a term that does
    // not exist, a control with two terms.
    Glossary(std::string_view json, const std::string& where);

    const std::vector<Term>& terms() const { return terms_; }
    const std::vector<ControlNote>& controls() const { return controls_; }
    const Term* find(std::string_view id) const;  // null: none
    // The term that explains a field of a lab. Null: none.
    const Term* field(std::string_view lab, std::string_view field) const;
    // The note on a control that is not a field, by the name of its probe: "bits.bit3",
    // "delayed.strip.scale.4". "*.more" is for "more" in labs that have no note of their own. Null: none.
    const ControlNote* control(std::string_view probe) const;

  private:
    void check(const std::string& where);
    std::vector<Term> terms_;
    std::vector<ControlNote> controls_;
    std::map<std::string, std::size_t, std::less<>> by_id_, by_field_;
};

Glossary load_glossary();  // assets/glossary.json

}  // namespace fp8lab
