#include "app/shell/profile/profile.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/files/kept_file.h"
#include "core/json/checksum.h"
#include "core/json/read_json.h"

namespace fp8lab {
namespace {

constexpr const char* kFile = "settings.json";
constexpr int kLargestSide = 16384;  // px
constexpr int kAnyInt = std::numeric_limits<int>::max();

Settings parse(const std::string& text) {
    const auto json = parse_with_checksum(text, kFile);
    Settings settings;
    settings.theme = parse_theme(json.at("theme").get<std::string>());
    settings.scale = json.at("scale").get<float>();
    if (settings.scale != 0) settings.scale = std::clamp(settings.scale, kSmallestScale, kLargestScale);
    settings.width = std::min(integer_from(json.at("width"), 0, kAnyInt), kLargestSide);
    settings.height = std::min(integer_from(json.at("height"), 0, kAnyInt), kLargestSide);
    settings.last_lab = json.at("last_lab").get<std::string>();
    settings.panel_open = json.at("panel_open").get<bool>();
    settings.toured = json.value("toured", false);
    if (json.contains("tabs")) json["tabs"].get_to(settings.tabs);  // since 0.1.0
    return settings;
}

}  // namespace

LoadedSettings load_settings(const ProfileFolders& folders) {
    LoadedSettings loaded;
    loaded.problem = load_kept(
        folders.config / kFile, [&](const std::string& text) { loaded.settings = parse(text); },
        folders.access);
    return loaded;
}

void save_settings(const ProfileFolders& folders, const Settings& settings) {
    if (folders.access == Access::read_only) return;
    make_folder(folders.config);
    const nlohmann::json json = {{"theme", to_string(settings.theme)},
                                 {"scale", settings.scale},
                                 {"width", settings.width},
                                 {"height", settings.height},
                                 {"last_lab", settings.last_lab},
                                 {"panel_open", settings.panel_open},
                                 {"toured", settings.toured},
                                 {"tabs", settings.tabs}};
    save_kept(folders.config / kFile, with_checksum(json, 2));
}

}  // namespace fp8lab
