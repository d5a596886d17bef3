// The parts of the window that have a state of their own. Each owns it, and its header is its manual; what is drawn every
// frame (rail, home, panel, status line: drawn.h) and the commands work on them.
#pragma once

#include "app/shell/keeping.h"
#include "app/shell/over.h"
#include "app/shell/past.h"
#include "app/shell/scenes.h"

namespace fp8lab {

struct Parts;
// Every row of command_table.cpp, every lab and every theme, in the order of the sheet of keys. `parts` outlives them.
std::vector<ShellCommand> make_commands(Parts& parts);

struct Parts {
    Parts(ui::Context& context, Settings settings, Machine machine, ProfileFolders folders, Host host);

    Common common;
    std::vector<ShellCommand> commands;
    Labs labs;
    ExercisesTab exercises;  // after the labs: an attempt lets go of its lab
    Past past;
    Keeping keeping;
    Presentation presentation;
    Scenes scenes;
    Over over;
};

}  // namespace fp8lab
