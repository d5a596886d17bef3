// The field table: the parameters of a lab, described once as data. Default widgets, tooltips, `--set
// name=value`, scenes, undo, reset and the provenance lines of exports are made from it without code per lab.
//
//   std::vector<Field> RulerLab::fields() {
//       return {number({.name = "scale", .label = "Scale", .te_name = "scale", .help = "..."},
//                      &params_.scale, 1e-4, 1e4)};
//   }
//
// A Field points to the parameter itself: build the table where it is used, and do not keep it longer than
// the parameters live.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/choice.h"

namespace fp8lab {

// The description of a field: the same for the default object and the live one.
struct FieldInfo {
    std::string name;          // key in --set, scenes and provenance: "history"
    std::string label;         // "History"
    std::string te_name = {};  // Transformer Engine's name beside ours: "amax_history_len"; may be empty
    std::string unit = {};     // "steps", "dB"; may be empty
    std::string help = {};     // one line: what it does and why one would change it
    bool more = false;         // second tier, behind "More"
    bool hidden = false;  // no default widget (the view draws its own, or it belongs to a figure's handle)
    bool looks = false;   // what is shown, or how fast: no result depends on it
    bool lines = false;   // a text that may hold several values, one per line
};

struct Field {
    FieldInfo info;
    std::variant<double*, int*, bool*, std::string*> value;
    double min = 0, max = 0;      // numbers and integers; inclusive
    bool logarithmic = false;     // the slider moves in log space
    std::vector<Choice> choices;  // non-empty: value is a std::string* holding a choice's id
};

Field number(FieldInfo info, double* value, double min, double max, bool logarithmic = false);
Field integer(FieldInfo info, int* value, int min, int max, bool logarithmic = false);
Field toggle(FieldInfo info, bool* value);
Field choice(FieldInfo info, std::string* value, std::vector<Choice> choices);
Field text(FieldInfo info, std::string* value);

// The field of that name; null: none has it.
const Field* find_field(std::span<const Field> fields, std::string_view name);

// The value as text, from which set_field() reads the same value (shortest round-trip decimals).
std::string field_text(const Field& field);

// Parses the text and stores the value. Throws usage_error with the field and its range or valid choices; then
// nothing is changed.
void set_field(const Field& field, std::string_view text);

// "name=value" as --set takes it. Throws usage_error listing the fields when the name is unknown.
void set_field(std::span<const Field> fields, std::string_view assignment);

// {"name": value, ...} and back. fields_from_json throws input_error for an unknown name, a wrong type or a
// value out of range; then nothing is changed.
nlohmann::json fields_to_json(std::span<const Field> fields);
void fields_from_json(std::span<const Field> fields, const nlohmann::json& values);

}  // namespace fp8lab
