#include "app/shell/scenes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/base/error.h"
#include "labs/course/link.h"
#include "labs/course/scene_run.h"

namespace fp8lab {
namespace {

// Logs of a run: whichever lab is open, the Workbench takes them.
bool is_log(const std::filesystem::path& path) {
    static constexpr std::array<std::string_view, 3> kLogs = {".jsonl", ".csv", ".log"};
    return std::ranges::find(kLogs, path.extension().string()) != kLogs.end();
}

}  // namespace

void Scenes::present(Deck deck) {
    presentation_.start(
        std::make_unique<Lecture>(std::move(deck), common_.folders.data / "tensors", common_.host.wake),
        true);
}

void Scenes::present() {
    if (Lab* lab = labs_.lab())
        presentation_.start(std::make_unique<Lecture>(*lab, common_.folders.data / "tensors"), false);
    else if (!presentation_.resume())
        common_.toasts.say("Nothing to present", "open a lab, or a lecture with Ctrl O");
}

void Scenes::open(const Scene& scene) {
    Labs::Entry& entry = *labs_.find(lab_of(scene).id);
    Past::Lost lost = past_.what_is(entry);
    const auto notices = apply_scene(*entry.lab, scene, common_.folders.data / "tensors");
    const bool changed = lost.state != entry.lab->state();
    past_.set_aside(entry, std::move(lost));
    entry.scene = scene;
    labs_.open(entry.info().id);
    Labs::update(entry);
    // While a lab computes apart its numbers are still those of before, or not there yet.
    const bool computes = entry.lab->busy() && !entry.lab->live();
    std::string told = scene.sentence.empty() || computes ? "Scene opened" : sentence_text(scene, *entry.lab);
    if (scene.steps > 0 && !sentence_is_known(scene, *entry.lab))
        told = fmt::format("Scene opened. Run it to step {}.", scene.steps);
    if (!notices.empty()) told = notices.front();
    common_.toasts.say({.title = scene.title, .line = told, .undo = changed});
}

void Scenes::open_file(const std::filesystem::path& path) {
    try {
        if (path.extension() == ".f8scene") return open(read_scene(path));
        if (path.extension() == ".f8deck") return present(read_deck(path));
        if (is_log(path)) return open_run(path.string());
        Labs::Entry* entry = labs_.current();
        const auto fields = entry == nullptr ? std::vector<Field>{} : entry->lab->fields();
        const Field* const file = find_field(fields, "file");
        if (file == nullptr)
            return common_.toasts.say(
                "Not opened",
                path.filename().string() + ": drop scenes, decks, or tensors on a lab that takes one");
        set_file(*entry, *file, path.string());
    } catch (const std::exception& error) {
        common_.toasts.say("Not opened", error.what());
    }
}

void Scenes::open_files(std::span<const std::string> paths) {
    std::string list, logs;
    const auto fields = labs_.current() == nullptr ? std::vector<Field>{} : labs_.current()->lab->fields();
    const Field* const file = find_field(fields, "file");
    for (const std::string& path : paths) {
        const std::string extension = std::filesystem::path(path).extension().string();
        if (is_log(path))
            logs += (logs.empty() ? "" : "\n") + path;
        else if (file && file->info.lines && extension != ".f8scene" && extension != ".f8deck")
            list += (list.empty() ? "" : "\n") + path;
        else
            open_file(path);
    }
    if (!list.empty()) set_file(*labs_.current(), *file, list);
    if (!logs.empty()) open_run(logs);
}

void Scenes::open_run(const std::string& paths) {
    lead_to({.lab = "workbench", .fields = {"experiment=run", "run=" + paths}});
}

// Over another file: the one before comes back with Ctrl Z, and the toast says so.
void Scenes::set_file(Labs::Entry& entry, const Field& file, const std::string& paths) {
    Past::Lost lost = past_.what_is(entry);
    const std::string before = field_text(file);
    set_field(file, paths);
    if (before.empty() || before == field_text(file)) return;
    past_.set_aside(entry, std::move(lost));
    common_.toasts.say_undoable("Another file opened", "Ctrl Z brings the one before back");
}

void Scenes::lead_to(const ui::Context::WantedLab& wanted, bool from_defaults) {
    Labs::Entry* const entry = labs_.find(wanted.lab);
    if (entry == nullptr) return;
    past_.set_aside(*entry, past_.what_is(*entry));
    if (from_defaults) entry->lab->reset();
    std::string refused;
    try {
        for (const std::string& field : wanted.fields) set_field(entry->lab->fields(), field);
    } catch (const std::exception& error) {
        refused = error.what();
    }
    entry->scene.reset();  // which may lock these fields
    labs_.open(wanted.lab);
    if (!refused.empty()) common_.toasts.warn("Not set", refused);  // open() takes toasts away
    Labs::update(*entry);
}

void Scenes::paste() {
    const char* text = ImGui::GetClipboardText();
    try {
        if (text == nullptr || !is_scene_line(text))
            return common_.toasts.say("No scene was copied", "it begins with f8scene:");
        open(scene_from_line(text));
    } catch (const std::exception& error) {
        common_.toasts.say("Not opened", error.what());
    }
}

void Scenes::copy() {
    Lab& lab = *labs_.lab();
    ImGui::SetClipboardText(scene_line(scene_of(lab, std::string(lab.info().short_title), "")).c_str());
    common_.toasts.say("Scene copied", "Ctrl V opens it in another window");
}

void Scenes::copy_link() {
    try {
        ImGui::SetClipboardText(common_.host.link(link_text(link_of(*labs_.lab()))).c_str());
        common_.toasts.say("Link copied", "It opens this lab as it stands");
    } catch (const std::exception& error) {
        common_.toasts.say("No link", error.what());
    }
}

void Scenes::open_link(std::string_view fragment) {
    try {
        const Link link = parse_link(fragment);
        if (is_scene_line(link.scene)) return open(scene_from_line(link.scene));
        if (!link.scene.empty()) return open(read_scene(find_scene(link.scene)));
        if (!link.deck.empty()) return present(read_deck(find_scene(link.deck)));
        if (link.lab.empty()) return labs_.open("");
        const std::string id(find_lab(link.lab).id);
        if (link.fields.empty()) return labs_.open(id);
        const auto tried = find_lab(link.lab).make();
        for (const std::string& field : link.fields) set_field(tried->fields(), field);
        lead_to({.lab = id, .fields = link.fields}, true);
    } catch (const std::exception& error) {
        common_.toasts.warn("The link was not opened", error.what());
    }
}

std::vector<Find> Scenes::finds() {
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
    for (const auto& entry : std::filesystem::directory_iterator(common_.folders.data / "scenes", none))
        if (entry.path().extension() == ".f8scene") add(entry.path(), "your own");
    for (const auto& path : shipped_scenes()) add(path, path.stem().string().substr(0, 3));
    return all;
}

Scenes::Held Scenes::held(Labs::Entry& entry) {
    common_.context.locked = entry.scene ? entry.scene->locked : std::vector<std::string>{};
    common_.context.hidden = entry.scene ? entry.scene->hidden : std::vector<std::string>{};
    Held held;
    for (const Field& field : entry.lab->fields())
        if (std::ranges::find(common_.context.locked, field.info.name) != common_.context.locked.end())
            held.emplace_back(field.info.name, field_text(field));
    return held;
}

// Some views have controls of their own for a field: what they moved goes back.
void Scenes::hold(Labs::Entry& entry, const Held& held) {
    for (const Field& field : entry.lab->fields())
        for (const auto& [name, value] : held)
            if (field.info.name == name && field_text(field) != value) {
                set_field(field, value);
                common_.toasts.say("Locked", field.info.label + " is fixed by the scene; Reset all frees it");
            }
}

}  // namespace fp8lab
