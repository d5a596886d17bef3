// Scenes and lectures: from files into the window.
#include <fmt/format.h>

#include <algorithm>

#include "app/shell/shell.h"
#include "core/base/error.h"
#include "labs/course/scene_run.h"

namespace fp8lab {

void Shell::present(Deck deck) {
    presentation_.start(std::make_unique<Lecture>(std::move(deck), folders_.data / "tensors", wake_), true);
}

void Shell::present() {
    if (Lab* lab = this->lab())
        presentation_.start(std::make_unique<Lecture>(*lab, folders_.data / "tensors"), false);
    else if (!presentation_.resume())
        say("Nothing to present", "open a lab, or a lecture with Ctrl O");
}

void Shell::open(const Scene& scene) {
    const auto id = lab_of(scene).id;
    for (Entry& entry : entries_) {
        if (entry.lab->info().id != id) continue;
        Lost lost = what_is(entry);
        const auto notices = apply_scene(*entry.lab, scene, folders_.data / "tensors");
        const bool changed = lost.state != entry.lab->state();
        set_aside(entry, std::move(lost));
        entry.scene = scene;
        open(id);
        update(entry);
        // While a lab computes apart its numbers are still those of before.
        std::string told =
            scene.sentence.empty() || entry.lab->stale() ? "Scene opened" : sentence_text(scene, *entry.lab);
        if (scene.steps > 0 && !sentence_is_known(scene, *entry.lab))
            told = fmt::format("Scene opened. Run it to step {}.", scene.steps);
        if (!notices.empty()) told = notices.front();
        toasts_.say({.title = scene.title, .line = told, .undo = changed});
    }
}

void Shell::open_file(const std::filesystem::path& path) {
    try {
        if (path.extension() == ".f8scene") return open(read_scene(path));
        if (path.extension() == ".f8deck") return present(read_deck(path));
        Entry* entry = current();
        const auto fields = entry == nullptr ? std::vector<Field>{} : entry->lab->fields();
        const Field* const file = find_field(fields, "file");
        if (file == nullptr)
            return say("Not opened",
                       path.filename().string() + ": drop scenes, decks, or tensors on a lab that takes one");
        set_file(*entry, *file, path.string());
    } catch (const std::exception& error) {
        say("Not opened", error.what());
    }
}

void Shell::open_files(std::span<const std::string> paths) {
    std::string list;
    const auto fields = current() == nullptr ? std::vector<Field>{} : current()->lab->fields();
    const Field* const file = find_field(fields, "file");
    for (const std::string& path : paths) {
        const std::string extension = std::filesystem::path(path).extension().string();
        if (file && file->info.lines && extension != ".f8scene" && extension != ".f8deck")
            list += (list.empty() ? "" : "\n") + path;
        else
            open_file(path);
    }
    if (!list.empty()) set_file(*current(), *file, list);
}

// Over another file: the one before comes back with Ctrl Z, and the toast says so.
void Shell::set_file(Entry& entry, const Field& file, const std::string& paths) {
    Lost lost = what_is(entry);
    const std::string before = field_text(file);
    set_field(file, paths);
    if (before.empty() || before == field_text(file)) return;
    set_aside(entry, std::move(lost));
    say_undoable("Another file opened", "Ctrl Z brings the one before back");
}

void Shell::lead_to(const ui::Context::WantedLab& wanted) {
    for (Entry& entry : entries_) {
        if (entry.lab->info().id != wanted.lab) continue;
        set_aside(entry, what_is(entry));
        try {
            for (const std::string& field : wanted.fields) set_field(entry.lab->fields(), field);
        } catch (const std::exception& error) {
            say("Not set", error.what());
        }
        entry.scene.reset();  // which may lock these fields
        open(wanted.lab);
        update(entry);
    }
}

void Shell::paste() {
    const char* text = ImGui::GetClipboardText();
    try {
        if (text == nullptr || !is_scene_line(text))
            return say("No scene was copied", "it begins with f8scene:");
        open(scene_from_line(text));
    } catch (const std::exception& error) {
        say("Not opened", error.what());
    }
}

std::vector<Find> Shell::scenes() {
    std::vector<Find> all;
    const auto add = [&](const std::filesystem::path& path, const std::string& detail) {
        try {
            const bool deck = path.extension() == ".f8deck";
            const std::string title = deck ? read_deck(path).title : read_scene(path).title;
            all.push_back({{.kind = deck ? "Deck" : "Scene",
                            .title = title,
                            .detail = detail,
                            .also = "scene " + path.stem().string()},
                           [this, path] { open_file(path); }});
        } catch (const Error& error) {
            all.push_back({{.kind = "Scene", .title = path.stem().string(), .detail = error.why()}, [] {}});
        }
    };
    for (const auto& path : shipped_decks()) add(path, "a lecture");
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folders_.data / "scenes", none))
        if (entry.path().extension() == ".f8scene") add(entry.path(), "your own");
    for (const auto& path : shipped_scenes()) add(path, path.stem().string().substr(0, 3));
    return all;
}

std::vector<std::pair<std::string, std::string>> Shell::held(Entry& entry) {
    context_.locked = entry.scene ? entry.scene->locked : std::vector<std::string>{};
    context_.hidden = entry.scene ? entry.scene->hidden : std::vector<std::string>{};
    std::vector<std::pair<std::string, std::string>> held;
    for (const Field& field : entry.lab->fields())
        if (std::ranges::find(context_.locked, field.info.name) != context_.locked.end())
            held.emplace_back(field.info.name, field_text(field));
    return held;
}

// Some views have controls of their own for a field: what they moved goes back.
void Shell::hold(Entry& entry, const std::vector<std::pair<std::string, std::string>>& held) {
    for (const Field& field : entry.lab->fields())
        for (const auto& [name, value] : held)
            if (field.info.name == name && field_text(field) != value) {
                set_field(field, value);
                say("Locked", field.info.label + " is fixed by the scene; Reset all frees it");
            }
}

// Keys that step are repeated while they are held. Which key gives a question mark depends on the layout, so
// the character is asked for.
void Shell::presentation_keys() {
    for (const ui::Key key : ui::all_keys()) {
        if (!presentation_.active()) return;
        const bool repeats = key == ui::Key::up || key == ui::Key::down;
        if (ui::pressed(key, repeats)) presentation_.key(key);
    }
    for (const ImWchar c : ImGui::GetIO().InputQueueCharacters)
        if (presentation_.active()) presentation_.typed(c);
}

// The one window that everything is drawn in, desk or presentation.
void Shell::begin_whole_window() {
    ImGui::SetNextWindowPos({0, 0});
    ImGui::SetNextWindowSize(ImGui::GetIO().DisplaySize);
    ImGui::Begin("shell", nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                     ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoNav |
                     ImGuiWindowFlags_NoScrollWithMouse);
}

void Shell::frame_presentation() {
    begin_whole_window();
    const ImVec2 size = ImGui::GetIO().DisplaySize;
    presentation_.frame({0, 0, size.x, size.y});
    ImGui::End();
}

}  // namespace fp8lab
