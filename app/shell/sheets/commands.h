// What can be done in the window, as a table (app/shell/command_table.cpp): the keys look it up, and the
// sheet of keys, the palette and the help of the buttons are written from it. A new command is a row there
// and nothing else.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "labs/ui/input.h"

namespace fp8lab {

// A key and what is held with it. Where a layout decides which key gives a character ("?"), the character is
// the chord.
struct Chord {
    ui::Key key = ui::Key::none;  // none: `character` counts
    bool ctrl = false, shift = false, alt = false;
    unsigned character = 0;
    bool operator==(const Chord&) const = default;
};
std::string to_string(const Chord& chord);  // "Ctrl Shift R", as it is shown and as keys.json has it
// Reads a chord; "Ctrl+Shift+R" is accepted too. Throws usage_error naming the part that is no key.
Chord parse_chord(std::string_view text);

struct ShellCommand {
    std::string id;                   // "palette": its name in keys.json
    std::string group;                // heading in the sheet of keys: "Find"
    std::string label;                // what it does, as on a button: "Reset all"
    std::vector<Chord> chords = {};   // the first is shown; none: by palette only
    std::function<void()> run = {};   //
    std::function<bool()> when = {};  // it applies; empty: always
    std::string help = {};            // one sentence more, where the label needs one
    std::string control = {};  // probe of the control that does the same; F1 on it tells of the command
    bool repeats = false;      // while the key is held
    bool over = false;         // also while a sheet lies over the window

    bool applies() const { return !when || when(); }
    std::string keys() const { return chords.empty() ? "" : to_string(chords.front()); }
};

// profile/keys.json: {"palette": "Ctrl P", "reset": ["Ctrl R", "F8"], "theme": []}. Takes the place of the
// chords of the commands named there; an empty list leaves a command without one. Throws input_error naming
// the file and the command: unknown, neither a text nor a list of texts, a text that is not a chord, a chord
// that two commands would have; and for a file that is not JSON, not an object, not a regular file or larger
// than 64 KiB. Nothing is changed then. No file: nothing to do.
void remap(std::span<ShellCommand> commands, const std::filesystem::path& file);

}  // namespace fp8lab
