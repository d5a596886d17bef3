// Without a verb the window opens. In a build without the window (FP8LAB_GUI=OFF) this is one clear error.
#pragma once

#include <string>

#include "app/cli/verb.h"

namespace fp8lab::cli {

struct WindowArguments {
    std::string lab;         // --lab; empty: where the user left off, else home
    std::string scene;       // --scene
    std::string deck;        // --present
    int monitor = 0;         // --monitor; 0: where the window is
    std::string probe_file;  // --probe-file (hidden): control rectangles as JSON after every frame, for tests
};

void add_window_options(CLI::App& app, WindowArguments& arguments);
int open_window(const WindowArguments& arguments, const Globals& globals);

}  // namespace fp8lab::cli
