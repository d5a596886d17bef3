// What the window remembers between starts: profile/settings.json.
#pragma once

#include <filesystem>
#include <string>

#include "core/figure/palette.h"

namespace fp8lab {

struct Settings {
    Theme theme = Theme::dark;
    float scale = 0;            // 0: the display's own scale
    int width = 0, height = 0;  // physical px; 0: 1440x900 logical
    std::string last_lab;       // id; empty: none visited yet
    bool panel_open = true;
    bool toured = false;  // the tour was taken, or ended
    bool operator==(const Settings&) const = default;
};

struct LoadedSettings {
    Settings settings;
    std::string problem;  // what became of a file that could not be read, in a few words; empty otherwise
};

LoadedSettings load_settings(const std::filesystem::path& folder);
void save_settings(const std::filesystem::path& folder, const Settings& settings);  // throws Error{failed}

constexpr float kSmallestScale = 0.75F, kLargestScale = 3.0F;

}  // namespace fp8lab
