// The window as a picture: drawn hidden, by the same Shell, and read back.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/figure/palette.h"
#include "core/lesson/manual/manual.h"

namespace fp8lab {

struct ScreenshotOptions {
    std::string lab;                       // id; empty: home
    std::string tab;                       // "explore", "learn", "exercises"; empty: as the window would open
    std::vector<std::string> assignments;  // --set name=value
    std::string
        open;  // what lies over it: "palette", "keys", "glossary[:TERM]", "manual[:PAGE]", "tour", "help:CONTROL"
    int steps = 0;         // of a live lab
    std::string scene;     // file or shipped name; instead of lab
    bool present = false;  // the scene as presentation shows it
    std::string profile;   // --profile DIR; empty: the usual place
    Theme theme = Theme::dark;
    int width = 1440, height = 900;  // physical px
    float scale = 1;
    int frames = 4;                     // drawn before the picture is taken; >= 3, since ImGui settles in two
    std::function<ManualPart()> verbs;  // of the manual; empty: it has none
    std::string output;                 // PNG; "-" is stdout
};

// Throws usage_error for unknown fields and values, Error{failed} without a display or when the file cannot
// be written.
void take_screenshot(const ScreenshotOptions& options);

}  // namespace fp8lab
