#include "core/lesson/glossary.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/files/files.h"
#include "core/json/read_json.h"

namespace fp8lab {
namespace {

using Json = nlohmann::json;

Error bad(std::string why) { return {ErrorKind::input, "", std::move(why)}; }

// Returns the strings of an object by name, and refuses the members that were not read.
class TermReader {
  public:
    explicit TermReader(const Json& json) : json_(json) {
        if (!json.is_object()) throw bad("expected an object");
    }
    std::string need(const char* key) {
        std::string text = may(key);
        if (text.empty()) throw bad(std::string("'") + key + "' is missing");
        return text;
    }
    std::string may(const char* key) {
        known_.emplace_back(key);
        return json_.value(key, "");
    }
    std::vector<std::string> list(const char* key) {
        known_.emplace_back(key);
        return json_.at(key).get<std::vector<std::string>>();
    }
    void done() const {
        for (const auto& [key, value] : json_.items())
            if (std::ranges::find(known_, key) == known_.end()) throw bad("unknown key '" + key + "'");
    }

  private:
    const Json& json_;
    std::vector<std::string> known_;
};

Term term_from(const Json& json) {
    TermReader from(json);
    Term out{.id = from.need("id"),
             .term = from.need("term"),
             .also = from.may("also"),
             .text = from.need("text"),
             .why = from.may("why"),
             .source = from.may("source"),
             .related = from.list("related"),
             .explains = from.list("explains")};
    from.done();
    return out;
}

ControlNote note_from(const Json& json) {
    TermReader from(json);
    ControlNote out{.control = from.need("control"),
                    .label = from.need("label"),
                    .help = from.need("help"),
                    .term = from.may("term")};
    from.done();
    return out;
}

std::string_view without_digits(std::string_view text) {
    while (!text.empty() && text.back() >= '0' && text.back() <= '9') text.remove_suffix(1);
    return text;
}

}  // namespace

Glossary::Glossary(std::string_view json, const std::string& where) {
    std::string at;
    try {
        const Json all = Json::parse(json);
        for (const Json& entry : all.at("terms")) {
            at = "term '" + (entry.is_object() ? entry.value("id", "?") : "?") + "'";
            terms_.push_back(term_from(entry));
            if (!by_id_.emplace(terms_.back().id, terms_.size() - 1).second) throw bad("is there twice");
        }
        for (const Json& entry : all.at("controls")) {
            at = "control '" + (entry.is_object() ? entry.value("control", "?") : "?") + "'";
            controls_.push_back(note_from(entry));
        }
    } catch (const Error& error) {
        throw input_error(where, at + ": " + error.why());
    } catch (const std::exception& error) {
        throw input_error(where, (at.empty() ? "" : "after " + at + ": ") + json_reason(error.what()));
    }
    check(where);
}

void Glossary::check(const std::string& where) {
    for (std::size_t i = 0; i < terms_.size(); ++i) {
        const Term& term = terms_[i];
        for (const std::string& id : term.related)
            if (!by_id_.contains(id) || id == term.id)
                throw input_error(where,
                                  "term '" + term.id + "': related to '" + id + "', which is no other term");
        for (const std::string& field : term.explains)
            if (!by_field_.emplace(field, i).second)
                throw input_error(where, "term '" + term.id + "': '" + field + "' is explained already");
    }
    for (const ControlNote& note : controls_) {
        if (!note.term.empty() && !by_id_.contains(note.term))
            throw input_error(where, "control '" + note.control + "': no term '" + note.term + "'");
        if (std::ranges::count(controls_, note.control, &ControlNote::control) > 1)
            throw input_error(where, "control '" + note.control + "': is there twice");
    }
}

const Term* Glossary::find(std::string_view id) const {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : &terms_[found->second];
}

const Term* Glossary::field(std::string_view lab, std::string_view field) const {
    for (const std::string_view owner : {lab, std::string_view("*")}) {
        const auto found = by_field_.find(std::string(owner) + "." + std::string(field));
        if (found != by_field_.end()) return &terms_[found->second];
    }
    return nullptr;
}

// The longest name that the probe starts with, up to a dot, a number or its end: "train.copy_recipe" is
// "train.copy".
const ControlNote* Glossary::control(std::string_view probe) const {
    const ControlNote* best = nullptr;
    const std::string anyone = "*" + std::string(probe.substr(std::min(probe.find('.'), probe.size())));
    for (const ControlNote& note : controls_) {
        if (anyone.starts_with(note.control) && note.control.size() > 2 && best == nullptr) best = &note;
        if (!probe.starts_with(note.control)) continue;
        const std::string_view rest = without_digits(probe.substr(note.control.size()));
        const bool whole = rest.empty() || rest.front() == '.' || rest.front() == '_';
        if (whole && (best == nullptr || note.control.size() > best->control.size())) best = &note;
    }
    return best;
}

Glossary load_glossary() {
    const auto file = asset("glossary.json");
    return {read_text(file), file.string()};
}

}  // namespace fp8lab
