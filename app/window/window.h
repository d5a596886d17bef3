// The window: GLFW, OpenGL 3.2 core, and the event-driven loop around Shell.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "core/lesson/manual/manual.h"
#include "core/lesson/scene.h"

namespace fp8lab {

struct WindowOptions {
    std::string lab;             // id; empty: home
    std::optional<Scene> scene;  // opened on the desk
    std::optional<Deck> deck;    // presented from the start
    int monitor = 0;             // to present on, from 1; 0: the one that the window is on
    // Receives the rectangles of all controls as JSON, after each frame in which they changed.
    std::string probe_file;
    bool probes = false;                // those rectangles are wanted in the context, without a file
    std::string profile;                // --profile DIR; empty: the usual place
    std::function<ManualPart()> verbs;  // of the manual; empty: it has none
    bool trace_startup = false;         // one line on stderr after the first frame
};

// Returns 0 when the window was closed. Throws Error{failed} with one sentence when there is no display or no
// OpenGL 3.2.
int run_window(const WindowOptions& options);

}  // namespace fp8lab
