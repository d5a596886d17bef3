// The help of a control as text, from the lab's field table and the glossary. The window shows it on F1;
// views contain no help texts.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/lesson/glossary.h"
#include "labs/lab.h"

namespace fp8lab {

struct ControlHelp {
    std::string title = {};                 // "History"
    std::string te_name = {};               // Transformer Engine's name; may be empty
    std::string what = {};                  // its effect
    std::string values = {};                // "1 to 1024 steps, default 16"; may be empty
    std::string term = {}, term_text = {};  // id and text of the glossary term
    std::string why = {};                   // why it matters
};

// The field of the lab that a control edits, by the control's name: "history", "history.value",
// "train.history", "bits.format0.2". Null: it edits no field.
const Field* field_of(std::string_view lab, std::span<const Field> fields, std::string_view probe);

// Help for any control of the lab, or of home where `lab` is null. Empty: there is none.
std::optional<ControlHelp> control_help(Lab* lab, std::string_view probe, const Glossary& glossary);

}  // namespace fp8lab
