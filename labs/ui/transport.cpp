#include "labs/ui/transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "labs/ui/draw.h"

namespace fp8lab::ui {
namespace {

constexpr float kRunWidth = 116, kStepWidth = 72, kResetWidth = 72, kBetween = 8;  // logical px
constexpr float kBarKnob = 8, kShortestBar = 60;
constexpr double kRefusedFor = 4;  // seconds that the words stay
constexpr Font kTotal{Face::mono, 15};

// What the mouse can mean on a bar: 1, 2, 5, 10 ... steps, at least two px of it.
int unit_of(int steps, float width_px) {
    const double least = 2.0 * steps / std::max(1.0, static_cast<double>(width_px));
    int unit = 1;
    while (unit < least)
        for (const int factor : {2, 5, 10})
            if (unit * factor >= least || factor == 10) {
                unit *= factor;
                break;
            }
    return unit;
}

}  // namespace

void Transport::ask(const std::string& action, const Act& act) {
    pausing_ = action == "pause";
    goal_ = 0;
    refused_.clear();
    act(action);
}

void Transport::run_to(int step, const TransportState& state, const Act& act) {
    if (step > state.step && step <= state.steps) {
        ask("run to " + std::to_string(step), act);
        goal_ = step;
        return;
    }
    refused_ = step > state.steps ? fmt::format("The training has {} steps.", group_thousands(state.steps))
               : step < state.step
                   ? fmt::format("Step {} is past. Reset starts again.", group_thousands(std::max(0, step)))
                   : "";
    refused_until_ = ImGui::GetTime() + kRefusedFor;
}

bool Transport::key(Key key, const TransportState& state, const Act& act) {
    if (key == Key::space) {
        ask(goes(state) ? "pause" : "run", act);
    } else if (key == Key::period && !state.ended && !goes(state)) {
        ask("step", act);
    } else {
        return false;
    }
    return true;
}

void Transport::draw(Context& c, Rect area, const TransportState& state, const Act& act) {
    pausing_ = pausing_ && state.running;
    if (state.step >= goal_ || !state.running) goal_ = 0;
    if (ImGui::GetTime() > refused_until_) refused_.clear();
    c.wants_redraw |= pausing_ || state.stepping || !refused_.empty();
    buttons(c, area, state, act);
    const float left = number(c, area, state, act);
    const float y = (area.y0 + area.y1) / 2;
    if (const std::string& words = refused_.empty() ? state.preparing : refused_; !words.empty()) {
        text_mid(c, {left, y}, words, {refused_.empty() ? Role::muted : Role::text}, kSans15);
        ui::probe(c, probe("said"), {left, area.y0, area.x1, area.y1}, {}, words);
        return;
    }
    float right = area.x1;
    const float time = state.time.empty() ? 0 : text_width(c, state.time, kSans13) + c.px(12);
    if (time > 0 && area.x1 - left - time >= c.px(kShortestBar)) {
        right -= time;
        text_mid(c, {area.x1, y}, state.time, {Role::muted}, kSans13, Anchor::right);
        const Rect words{right + c.px(12), area.y0, area.x1, area.y1};
        ui::probe(c, probe("time"), words, {}, state.time);
        advance(words);
        tooltip(c, "Time left", state.time_help);
    }
    bar(c, {left, area.y0, right, area.y1}, state, act);
}

void Transport::buttons(Context& c, Rect area, const TransportState& state, const Act& act) {
    const auto place = [&](float x) { ImGui::SetCursorScreenPos({area.x0 + c.px(x), area.y0}); };
    const bool on = goes(state);
    place(0);
    const bool first = state.step == 0 && !state.running;  // the one thing to press
    if (button(c, probe("run"),
               on            ? "Pause"
               : state.ended ? "Run again"
                             : "Run",
               {.key = state.ended ? "" : "Space", .primary = first, .width = kRunWidth}))
        ask(on ? "pause" : "run", act);
    place(kRunWidth + kBetween);
    if (button(c, probe("step"), "Step",
               {.key = ".",
                .disabled = on || state.ended,
                .why_disabled = on ? "Pause first." : "The training is at its end.",
                .width = kStepWidth}))
        ask("step", act);
    place(kRunWidth + kStepWidth + 2 * kBetween);
    if (button(c, probe("reset"), "Reset", {.width = kResetWidth})) ask("restart", act);
}

// The step in a field of the widest number, so that the bar's left end stays where it is.
float Transport::number(Context& c, Rect area, const TransportState& state, const Act& act) {
    const float y = (area.y0 + area.y1) / 2, half = c.px(12);
    const float x = area.x0 + c.px(kRunWidth + kStepWidth + kResetWidth + 3 * kBetween + 8);
    const std::string total = "of " + group_thousands(state.steps);
    const float widest = text_width(c, group_thousands(state.steps), {Face::mono, 13}) + c.px(18);
    const Rect field{x, y - half, x + std::max(c.px(52), widest), y + half};
    const int shown = drag_ >= 0 ? drag_ : state.step;
    if (const auto typed = value_field(c, probe("at_step"), field, shown, group_thousands(shown)))
        run_to(static_cast<int>(std::lround(std::clamp(*typed, -1.0, 1e9))), state, act);
    advance(field);
    tooltip(c, "Step", "Type a step and press Enter: the training runs to it and pauses.");
    text_mid(c, {field.x1 + c.px(8), y}, total, {Role::muted}, kTotal);
    return field.x1 + c.px(8) + text_width(c, total, kTotal) + c.px(16);
}

void Transport::bar(Context& c, Rect area, const TransportState& state, const Act& act) {
    if (area.width() < c.px(kShortestBar)) return;
    const float radius = c.px(kBarKnob), y = (area.y0 + area.y1) / 2;
    const Rect track{area.x0 + radius, y, area.x1 - radius, y};
    const Press hit = press(c, probe("run_to"), area);
    const auto x_of = [&](int step) {
        return track.x0 + track.width() * static_cast<float>(step) / static_cast<float>(state.steps);
    };
    if (hit.held) {
        const double share = std::clamp((ImGui::GetIO().MousePos.x - track.x0) / track.width(), 0.0F, 1.0F);
        const int unit = unit_of(state.steps, track.width() / c.scale);
        const auto near = static_cast<int>(std::lround(share * state.steps / unit)) * unit;
        drag_ = std::clamp(near, state.step, state.steps);
    } else if (drag_ >= 0) {
        if (drag_ > state.step) run_to(drag_, state, act);
        drag_ = -1;
    }
    if (hit.focused && key_pressed(Key::right))
        run_to(std::min(std::max(goal_, state.step) + std::max(1, state.steps / 20), state.steps), state,
               act);
    const float thick = 2 * hairline(c), top = std::round(y - thick / 2);
    fill_rect(c, {area.x0, top, area.x1, top + thick}, {Role::line});
    fill_rect(c, {area.x0, top, x_of(state.step), top + thick}, {Role::text});
    if (goal_ > 0) {  // where it will pause
        const float x = std::round(x_of(goal_));
        fill_rect(c, {x, y - c.px(6), x + thick, y + c.px(6)}, {Role::axis});
    }
    auto& list = *ImGui::GetWindowDrawList();
    const Point knob{x_of(drag_ >= 0 ? drag_ : state.step), y};
    list.AddCircleFilled({knob.x, knob.y}, c.px(kBarKnob + 2), c.color(Role::surface));
    list.AddCircleFilled({knob.x, knob.y}, radius, c.color(Role::text));
    ui::probe(c, probe("run_to"), area, {}, drag_ >= 0 ? std::to_string(drag_) : "");
    advance(area);
    tooltip(c, "Run to",
            "Press a place on the bar, or drag the knob: the training runs to that step and pauses.");
}

}  // namespace fp8lab::ui
