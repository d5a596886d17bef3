// What a control is and why it matters, as text: from the lab's field table and the glossary. The window
// shows it on F1, without a line of help in any view.
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
    std::string what = {};                  // what it does
    std::string values = {};                // "1 to 1024 steps, default 16"; may be empty
    std::string term = {}, term_text = {};  // the glossary's: id; what it is
    std::string why = {};                   // why it matters
};

// The field of the lab that a control edits, by the control's name: "history", "history.value",
// "train.history", "bits.format0.2". Null: it edits none.
const Field* field_of(std::string_view lab, std::span<const Field> fields, std::string_view probe);

// Of any control, of the lab or (null) of home. Empty where nothing is known of it.
std::optional<ControlHelp> control_help(Lab* lab, std::string_view probe, const Glossary& glossary);

}  // namespace fp8lab
