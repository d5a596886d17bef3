// What the shell does so that nothing is lost: undo, the journal, and another try at what was not saved.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "app/shell/shell.h"
#include "core/base/error.h"
#include "core/base/names.h"

namespace fp8lab {
namespace {

using Json = nlohmann::json;
constexpr double kRetry_s = 10;

bool any_button_down() {
    const ImGuiIO& io = ImGui::GetIO();
    return io.MouseDown[0] || io.MouseDown[1];
}

// "history" for the control "history" and its parts, "history.value".
bool belongs_to(std::string_view control, std::string_view field) {
    return control.starts_with(field) && (control.size() == field.size() || control[field.size()] == '.');
}

// A training that has begun and leaves no record.
bool trains_unrecorded(const Lab& lab) {
    if (!lab.live() || !lab.record().empty()) return false;
    const auto metrics = lab.metrics();
    const auto step = std::ranges::find(metrics, "step", &Metric::name);
    return step != metrics.end() && step->value > 0;
}

}  // namespace

std::string_view name_of(Tab tab) {
    return tab == Tab::explore ? "explore" : tab == Tab::learn ? "learn" : "exercises";
}

Shell::Entry& Shell::entry_of(const Lab& lab) {
    return *std::ranges::find(entries_, &lab, [](const Entry& entry) { return entry.lab.get(); });
}

Shell::Lost Shell::what_is(Entry& entry) {
    Lab& lab = *entry.lab;
    return {lab.state(), lab.live() ? lab.record() : "", entry.scene, exercises_.aside(lab)};
}

void Shell::bring_back(Entry& entry, const Lost& lost) {
    Lab& lab = *entry.lab;
    try {
        exercises_.bring_back(lab, lost.attempt);
        lab.restore(lost.state);
        if (!lost.attempt.run && !lost.record.empty()) lab.replay(lost.record);
        entry.scene = lost.scene;
    } catch (const std::exception& error) {
        say("Not undone", error.what());
    }
    update(entry);
}

void Shell::set_aside(Entry& entry, Lost lost) {
    apart_ = true;
    entry.undo.with_next([this, &entry, lost = std::move(lost)]() mutable {
        Lost now = what_is(entry);
        bring_back(entry, lost);
        lost = std::move(now);
    });
}

// An attempt at an exercise starts anew from its own start.
void Shell::reset(Entry& entry) {
    const bool attempt = exercises_.under_way(*entry.lab), training = trains_unrecorded(*entry.lab);
    Lost lost = what_is(entry);
    if (!exercises_.restart(*entry.lab)) entry.lab->reset();
    exercises_.reveal(*entry.lab);
    entry.scene.reset();
    toasts_.let_go();
    if (!attempt && !training && lost.record.empty() && lost.state == entry.lab->state()) return;
    set_aside(entry, std::move(lost));
    if (attempt)
        say_undoable("Exercise begun again", "Ctrl Z brings the attempt back");
    else
        say_undoable("All controls reset",
                     training ? "Ctrl Z brings them back, the training is gone" : "Ctrl Z brings them back");
}

void Shell::note_undo(Entry& entry) {
    apart_ |= any_button_down();
    if (any_button_down()) return;
    entry.undo.note(entry.lab->state(), ImGui::GetTime(), !std::exchange(apart_, false));
}

void Shell::travel(Entry& entry, const Json* state) {
    if (state == nullptr) return;
    toasts_.undone();
    try {
        entry.lab->restore(*state);
    } catch (const Error& error) {
        say("Not undone", error.what());
    }
    update(entry);
}

// An attempt's controls go back to its own start.
void Shell::reset_control(Entry& entry) {
    const auto fields = entry.lab->fields();
    const bool one = std::ranges::any_of(
        fields, [&](const Field& field) { return belongs_to(focused_, field.info.name); });
    const auto defaults = entry.lab->defaults();
    const State* start = exercises_.start(*entry.lab);
    apart_ = true;
    for (std::size_t i = 0; i < fields.size(); ++i) {
        const std::string& name = fields[i].info.name;
        if (one ? !belongs_to(focused_, name) : fields[i].info.hidden) continue;
        set_field(fields[i], start ? start->field(name) : field_text(defaults[i]));
    }
    update(entry);
}

// ---- against a crash

void Shell::journal(Journal& journal) {
    const std::string at = local_time();
    for (Entry& entry : entries_) {
        const std::string id(entry.lab->info().id);
        if (!entry.view) continue;  // never shown
        exercises_.note(journal, *entry.lab, at);
        journal.note("lab." + id, entry.lab->state(), at);
    }
    Entry* entry = current();
    const Tab tab = entry == nullptr ? Tab::explore : shown_tab(*entry);
    journal.note("desk", {{"lab", open_}, {"tab", name_of(tab)}}, at);
    const ui::Context::Typing& typing = context_.typing;
    const Json typed = {{"lab", open_}, {"name", typing.name}, {"text", typing.text}};
    if (typing.name.empty()) journal.assume("typing", nullptr);
    journal.note("typing", typing.name.empty() ? Json() : typed, at);
}

void Shell::answer() {
    if (!recovery_.asking()) return;
    context_.focus.reach = ui::Focus::Reach::live;
    if (!recovery_.draw(context_)) return;
    greeted_ = false;
    if (const auto left = recovery_.restoring()) restore(*left);
}

void Shell::restore(const Journal::Left& left) {
    std::string lost;
    for (Entry& entry : entries_) {
        const std::string id(entry.lab->info().id);
        try {
            exercises_.restore(*entry.lab, left.values);
            const auto state = left.values.find("lab." + id);
            if (state != left.values.end()) entry.lab->restore(state->second);
        } catch (const std::exception& error) {
            lost += fmt::format("{}{}: {}", lost.empty() ? "" : "; ", entry.lab->info().name(), error.what());
        }
        update(entry);
    }
    const auto value = [&](const char* key) {
        const auto found = left.values.find(key);
        return found != left.values.end() && found->second.is_object() ? found->second : Json::object();
    };
    const auto word = [](const Json& json, const char* name) {
        const auto found = json.find(name);
        return found != json.end() && found->is_string() ? found->get<std::string>() : "";
    };
    const Json desk = value("desk"), typing = value("typing");
    const std::string lab = word(desk, "lab");
    if (std::ranges::any_of(entries_, [&](const Entry& e) { return e.lab->info().id == lab; })) open(lab);
    for (const Tab tab : {Tab::explore, Tab::learn, Tab::exercises})
        if (!open_.empty() && word(desk, "tab") == name_of(tab)) settings_.tabs[open_] = name_of(tab);
    if (!word(typing, "name").empty() && word(typing, "lab") == open_)
        context_.typing = {word(typing, "name"), word(typing, "text"), true};
    if (!lost.empty()) warn("Not everything was restored", lost);
}

double Shell::rest(double now_s) {
    double due = std::numeric_limits<double>::infinity();
    if (!exercises_.progress().unsaved().empty()) {
        if (now_s >= retried_s_ + kRetry_s) {
            retried_s_ = now_s;
            if (exercises_.retry()) say("Saved now", "What could not be saved before is");
            context_.wants_redraw = true;
        }
        due = retried_s_ + kRetry_s - now_s;
    }
    due = std::min(due, toasts_.rest(now_s));
    if (!recovery_.keeps()) return due;
    const bool was_refused = !recovery_.problem().empty();
    if (!any_button_down()) recovery_.note([this](Journal& to) { journal(to); });
    due = std::min(due, recovery_.sync(now_s));
    const bool refused = !recovery_.problem().empty();
    if (refused != was_refused) context_.wants_redraw = true;
    return refused ? std::min(due, kRetry_s) : due;
}

std::string Shell::close() {
    const auto& unsaved = exercises_.progress().unsaved();
    if (!unsaved.empty() && !exercises_.retry())
        return fmt::format("{} could not be saved in {}",
                           some_names(unsaved, [](const std::string& id) { return id; }),
                           folders_.data.string());
    recovery_.close();
    return {};
}

std::vector<std::pair<std::string, std::string>> Shell::notices() const {
    std::vector<std::pair<std::string, std::string>> out;
    if (!folders_.why_read_only.empty()) out.emplace_back("Read only", folders_.why_read_only);
    if (!recovery_.problem().empty()) out.emplace_back(kCrashWould, recovery_.problem());
    const std::size_t unsaved = exercises_.progress().unsaved().size();
    if (unsaved > 0)
        out.emplace_back("Not saved yet",
                         fmt::format("{} {}, tried again", unsaved, unsaved == 1 ? "file" : "files"));
    return out;
}

}  // namespace fp8lab
