#include "app/shell/profile.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/base/error.h"
#include "core/base/files.h"

namespace fp8lab {
namespace {

namespace fs = std::filesystem;
constexpr const char* kFile = "settings.json";

Settings parse(const std::string& text) {
    const auto json = nlohmann::json::parse(text);
    Settings settings;
    settings.theme = parse_theme(json.at("theme").get<std::string>());
    settings.scale = json.at("scale").get<float>();
    if (settings.scale != 0) settings.scale = std::clamp(settings.scale, kSmallestScale, kLargestScale);
    settings.width = std::clamp(json.at("width").get<int>(), 0, 16384);
    settings.height = std::clamp(json.at("height").get<int>(), 0, 16384);
    settings.last_lab = json.at("last_lab").get<std::string>();
    settings.panel_open = json.at("panel_open").get<bool>();
    settings.toured = json.value("toured", false);
    return settings;
}

}  // namespace

LoadedSettings load_settings(const fs::path& folder) {
    const fs::path file = folder / kFile;
    std::error_code problem;
    if (!fs::exists(file, problem)) return {};
    try {
        return {parse(read_text(file)), ""};
    } catch (const std::exception&) {  // whatever is wrong with it, the window opens
        const fs::path kept = folder / (std::string(kFile) + ".bak");
        fs::rename(file, kept, problem);
        return {{}, "unreadable, so the defaults are used; kept as " + kept.filename().string()};
    }
}

void save_settings(const fs::path& folder, const Settings& settings) {
    std::error_code problem;
    fs::create_directories(folder, problem);
    if (problem) throw Error{ErrorKind::failed, folder.string(), problem.message()};
    const nlohmann::json json = {{"theme", to_string(settings.theme)},
                                 {"scale", settings.scale},
                                 {"width", settings.width},
                                 {"height", settings.height},
                                 {"last_lab", settings.last_lab},
                                 {"panel_open", settings.panel_open},
                                 {"toured", settings.toured}};
    write_file(folder / kFile, json.dump(2) + "\n");
}

}  // namespace fp8lab
