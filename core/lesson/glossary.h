// The terms of the field, and what each control has to do with them: assets/glossary.json.
//
//   {"terms": [{"id": "amax", "term": "amax", "also": "absolute maximum", "text": "The largest ...", "why":
//   "One
//     outlier ...", "source": "...", "related": ["scale"], "explains": ["window.zero", "*.seed"]}],
//    "controls": [{"control": "delayed.play", "label": "Play", "help": "Runs ...", "term": "step"}]}
//
// `explains` holds fields, "<lab>.<field>" or "*.<field>" where no lab's own is there; `controls` what is no
// field.
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
    std::string source;  // of the figures in it; may be empty
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
    // Throws input_error naming the entry: a key that is missing or unknown, an id twice, a link or a control
    // that leads nowhere or to two terms.
    Glossary(std::string_view json, const std::string& where);

    const std::vector<Term>& terms() const { return terms_; }
    const std::vector<ControlNote>& controls() const { return controls_; }
    const Term* find(std::string_view id) const;  // null: none
    // What explains a field of a lab. Null: none.
    const Term* field(std::string_view lab, std::string_view field) const;
    // The note on a control that is no field, by its probe: "bits.bit3", "delayed.strip.scale.4". "*.more" is
    // about the "more" of any lab that has no note of its own. Null: none.
    const ControlNote* control(std::string_view probe) const;

  private:
    void check(const std::string& where);
    std::vector<Term> terms_;
    std::vector<ControlNote> controls_;
    std::map<std::string, std::size_t, std::less<>> by_id_, by_field_;
};

Glossary load_glossary();  // assets/glossary.json

}  // namespace fp8lab
