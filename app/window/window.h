// The window: GLFW, OpenGL 3.2 core, and the event-driven loop around Shell.
#pragma once

#include <string>

#include "app/desk/session.h"

namespace fp8lab {

struct WindowOptions : SessionOptions {
    int monitor = 0;  // to present on, from 1; 0: the one that the window is on
    // Receives the rectangles of all controls as JSON, after each frame in which they changed.
    std::string probe_file;
    bool trace_startup = false;  // one line on stderr after the first frame
};

// Returns 0 when the window was closed. Throws Error{failed} with one sentence when there is no display or no
// OpenGL 3.2.
int run_window(const WindowOptions& options);

}  // namespace fp8lab
