// Scenes and decks on disk: read, and found by name.
#include <algorithm>

#include "core/base/error.h"
#include "core/files/bounded_file.h"
#include "core/files/files.h"
#include "core/lesson/scene.h"

namespace fp8lab {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> assets_in(std::string_view folder, std::string_view extension) {
    std::vector<fs::path> out;
    for (const auto& entry : fs::directory_iterator(asset(folder)))
        if (entry.path().extension() == extension) out.push_back(entry.path());
    std::ranges::sort(out);
    return out;
}

}  // namespace

Scene read_scene(const fs::path& path) {
    Scene scene = parse_scene(read_bounded(path, kLargestScene), path.string());
    scene.folder = path.parent_path();
    return scene;
}

Deck read_deck(const fs::path& path) {
    if (fs::is_directory(path)) {
        Deck deck;
        deck.title = path.filename().string();
        std::vector<fs::path> files;
        for (const auto& entry : fs::directory_iterator(path))
            if (entry.path().extension() == ".f8scene") files.push_back(entry.path());
        std::ranges::sort(files);
        for (const fs::path& file : files) deck.scenes.push_back(read_scene(file));
        if (files.empty()) throw input_error(path.string(), "holds no scene (*.f8scene)");
        return deck;
    }
    if (path.extension() != ".f8scene")
        return parse_deck(read_bounded(path, kLargestScene), path.string(), path.parent_path());
    Deck deck;
    Scene& scene = deck.scenes.emplace_back(read_scene(path));
    deck.title = scene.title;
    deck.notices = scene.notices;
    return deck;
}

fs::path deck_scene(const fs::path& folder, const std::string& name) {
    fs::path file = folder / name;
    if (file.extension() != ".f8scene") file += ".f8scene";
    std::error_code none;  // a name too long for a file as well
    if (fs::exists(file, none)) return file;
    for (const fs::path& shipped : shipped_scenes())
        if (shipped.stem() == name || shipped.filename() == name) return shipped;
    return {};
}

fs::path find_scene(const std::string& name) {
    std::error_code none;
    if (fs::exists(name, none)) return name;
    std::string valid;
    for (const auto& files : {shipped_decks(), shipped_scenes()})
        for (const fs::path& file : files) {
            if (file.stem() == name || file.filename() == name) return file;
            valid += " " + file.stem().string();
        }
    throw input_error(name, "is no file and no shipped scene; shipped:" + valid);
}

std::vector<fs::path> shipped_scenes() { return assets_in("scenes", ".f8scene"); }
std::vector<fs::path> shipped_decks() { return assets_in("scenes", ".f8deck"); }

}  // namespace fp8lab
