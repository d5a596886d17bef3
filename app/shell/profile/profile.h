// What the window remembers between starts: settings.json in the profile's configuration.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "core/figure/palette.h"
#include "core/files/folders.h"

namespace fp8lab {

struct Settings {
    Theme theme = Theme::dark;
    float scale = 0;            // 0: the display's own scale
    int width = 0, height = 0;  // physical px; 0: 1440x900 logical
    std::string last_lab;       // id; empty: none visited yet
    bool panel_open = true;
    bool toured = false;  // the tour was taken, or ended
    // Lab -> the tab that it was left with: "explore", "learn", "exercises". Learn where it is not here.
    std::map<std::string, std::string, std::less<>> tabs;
    bool operator==(const Settings&) const = default;
};

struct LoadedSettings {
    Settings settings;
    std::string problem;  // what became of a file that could not be read, as a sentence; empty otherwise
};

LoadedSettings load_settings(const ProfileFolders& folders);
// Throws Error{failed}. Does nothing to a profile that is only read.
void save_settings(const ProfileFolders& folders, const Settings& settings);

constexpr float kSmallestScale = 0.75F, kLargestScale = 3.0F;

}  // namespace fp8lab
