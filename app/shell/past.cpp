#include "app/shell/past.h"

#include <algorithm>

#include "core/base/error.h"

namespace fp8lab {
namespace {

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

bool any_button_down() {
    const ImGuiIO& io = ImGui::GetIO();
    return io.MouseDown[0] || io.MouseDown[1];
}

Past::Past(Common& common, Labs& labs, ExercisesTab& exercises) : common_(common), exercises_(exercises) {
    for (Labs::Entry& entry : labs.entries()) {
        exercises_.reveal(*entry.lab);
        entry.undo.note(entry.lab->state(), 0, false);
    }
}

void Past::begin_frame() {
    const ui::Focus& focus = common_.context.focus;
    focused_ = focus.visible ? focus.name : "";
}

Past::Lost Past::what_is(Labs::Entry& entry) {
    Lab& lab = *entry.lab;
    return {lab.state(), lab.live() ? lab.record() : "", entry.scene, exercises_.aside(lab)};
}

void Past::bring_back(Labs::Entry& entry, const Lost& lost) {
    Lab& lab = *entry.lab;
    try {
        exercises_.bring_back(lab, lost.attempt);
        lab.restore(lost.state);
        if (!lost.attempt.run && !lost.record.empty()) lab.replay(lost.record);
        entry.scene = lost.scene;
    } catch (const std::exception& error) {
        common_.toasts.say("Not undone", error.what());
    }
    Labs::update(entry);
}

void Past::set_aside(Labs::Entry& entry, Lost lost) {
    apart_ = true;
    entry.undo.with_next([this, &entry, lost = std::move(lost)]() mutable {
        Lost now = what_is(entry);
        bring_back(entry, lost);
        lost = std::move(now);
    });
}

// An attempt at an exercise starts anew from its own start.
void Past::reset(Labs::Entry& entry) {
    const bool attempt = exercises_.under_way(*entry.lab), training = trains_unrecorded(*entry.lab);
    Lost lost = what_is(entry);
    if (!exercises_.restart(*entry.lab)) entry.lab->reset();
    exercises_.reveal(*entry.lab);
    entry.scene.reset();
    common_.toasts.let_go();
    if (!attempt && !training && lost.record.empty() && lost.state == entry.lab->state()) return;
    set_aside(entry, std::move(lost));
    if (attempt)
        common_.toasts.say_undoable("Exercise begun again", "Ctrl Z brings the attempt back");
    else
        common_.toasts.say_undoable(
            "All controls reset",
            training ? "Ctrl Z brings them back, the training is gone" : "Ctrl Z brings them back");
}

void Past::note(Labs::Entry& entry) {
    apart_ |= any_button_down();
    if (any_button_down()) return;
    entry.undo.note(entry.lab->state(), ImGui::GetTime(), !std::exchange(apart_, false));
}

void Past::travel(Labs::Entry& entry, const nlohmann::json* state) {
    if (state == nullptr) return;
    common_.toasts.undone();
    try {
        entry.lab->restore(*state);
    } catch (const Error& error) {
        common_.toasts.say("Not undone", error.what());
    }
    Labs::update(entry);
}

// An attempt's controls go back to its own start.
void Past::reset_control(Labs::Entry& entry) {
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
    Labs::update(entry);
}

}  // namespace fp8lab
