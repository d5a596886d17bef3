#include <fmt/format.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <cmath>

#include "core/base/read_number.h"
#include "core/base/units.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab::ui {
namespace {

constexpr float kKnob = 8;

struct Range01 {  // value <-> 0..1 along the track
    double min, max;
    bool logarithmic;
    double at(double t) const {
        t = std::clamp(t, 0.0, 1.0);
        return logarithmic ? min * std::pow(max / min, t) : min + (max - min) * t;
    }
    double of(double value) const {
        if (max <= min) return 0;
        const double t =
            logarithmic ? std::log(value / min) / std::log(max / min) : (value - min) / (max - min);
        return std::clamp(t, 0.0, 1.0);
    }
};

// What the mouse can mean: multiples of the step, or three digits, so that what is shown can be typed again.
double snap(double value, const Range01& range, double step) {
    if (step > 0) {
        value = range.min + std::round((value - range.min) / step) * step;
    } else if (value != range.min && value != range.max && value != 0) {
        const double unit = std::pow(10.0, std::floor(std::log10(std::abs(value))) - 2);
        value = std::round(value / unit) * unit;
    }
    return std::clamp(value, range.min, range.max);
}

double nudge(double value, const Range01& range, double step, int direction) {
    const double next = snap(range.at(range.of(value) + 0.01 * direction), range, step);
    const bool linear_steps = step > 0 && !range.logarithmic;
    if (next != value && !linear_steps) return next;
    return std::clamp(value + direction * step, range.min, range.max);
}

std::string value_text(double value, std::string_view format) {
    return format.empty() ? format_number(value, 4, true)
                          : fmt::format(fmt::runtime(format), value, std::exp2(value));
}

}  // namespace

std::optional<double> value_field(Context& context, const std::string& name, Rect area, double value,
                                  std::string_view shown) {
    constexpr Font kFont{Face::mono, 13};
    auto& typing = context.typing;
    std::optional<double> typed;
    if (typing.name != name) {
        const Press hit = press(context, name, area, 4);
        fill_rect(context, area, {Role::surface}, 4);
        stroke_rect(context, area, {hit.hovered ? Role::axis : Role::line}, 4);
        text_mid(context, {area.x1 - context.px(8), (area.y0 + area.y1) / 2}, shown, {Role::text}, kFont,
                 Anchor::right);
        if (hit.clicked) typing = {name, shortest(value), true};
        context.opens_text |= hit.clicked;
        return typed;
    }
    ImGui::PushFont(context.font(kFont));
    const float pad = std::max(0.0F, (area.height() - ImGui::GetFontSize()) / 2);
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {context.px(8), pad});
    const ImVec2 cursor = ImGui::GetCursorScreenPos();
    ImGui::SetCursorScreenPos({area.x0, area.y0});
    ImGui::SetNextItemWidth(area.width());
    if (typing.wants_focus) focus_text_field(("##" + name).c_str());
    const auto flags = ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll;
    const bool entered = ImGui::InputText(("##" + name).c_str(), &typing.text, flags);
    got_focus(context);
    const bool deactivated = ImGui::IsItemDeactivated(), given_up = pressed(Key::escape);
    const bool tabbed = tab_leaves(context, name), left = tabbed || deactivated;
    ImGui::SetCursorScreenPos(cursor);
    ImGui::PopStyleVar();
    ImGui::PopFont();
    probe(context, name, area);
    if ((entered || left) && !given_up) {
        double parsed = 0;
        if (read_number(typing.text, parsed) && !std::isnan(parsed)) typed = parsed;
    }
    if (entered || left) typing = {};
    return typed;
}

namespace {

void draw_ticks(Context& context, Rect track, const Range01& range, std::span<const double> ticks) {
    float free_from = -1e9F;
    for (const double tick : ticks) {
        const float x = std::round(track.x0 + static_cast<float>(range.of(tick)) * track.width());
        const float y = track.y0 + context.px(9);
        fill_rect(context, {x, y, x + hairline(context), y + context.px(4)}, {Role::axis});
        const std::string words = format_number(tick, 4, true);
        const float half = text_width(context, words, {Face::mono, 13}) / 2;
        const float middle = std::min(x, track.x1 + context.px(kKnob) - half);  // inside the column
        if (middle - half < free_from) continue;
        text_mid(context, {middle, track.y0 + context.px(22)}, words, {Role::muted}, {Face::mono, 13},
                 Anchor::center);
        free_from = middle + half + context.px(8);
    }
}

void draw_track(Context& context, Rect area, Rect track, const Range01& range, double value,
                const SliderOptions& options) {
    const float thick = std::max(2.0F, std::round(context.px(2)));
    const float top = std::round(track.y0 - thick / 2);
    const float knob_x = track.x0 + static_cast<float>(range.of(value)) * track.width();
    fill_rect(context, {area.x0, top, area.x1, top + thick}, {Role::line});
    fill_rect(context, {area.x0, top, knob_x, top + thick}, {Role::text});
    if (options.default_value) {
        const float x =
            std::round(track.x0 + static_cast<float>(range.of(*options.default_value)) * track.width());
        fill_rect(context, {x, track.y0 - context.px(6), x + hairline(context), track.y0 + context.px(6)},
                  {Role::axis});
    }
    draw_ticks(context, track, range, options.ticks);
    auto& list = *ImGui::GetWindowDrawList();
    list.AddCircleFilled({knob_x, track.y0}, context.px(kKnob + 2), context.color(Role::raised));
    list.AddCircleFilled({knob_x, track.y0}, context.px(kKnob), context.color(Role::text));
}

}  // namespace

bool slider(Context& context, std::string_view name, std::string_view label, std::string_view te_name,
            double& value, double min, double max, SliderOptions options) {
    const Range01 range{min, max, options.logarithmic && min > 0};
    const double before = value;
    const Rect area = next_area(context, options.ticks.empty() ? 56 : 72);
    const float label_y = area.y0 + context.px(12);
    const Font label_font{Face::sans, 15};
    text_mid(context, {area.x0, label_y}, label, {Role::text}, label_font);
    const float te_x = area.x0 + text_width(context, label, label_font) + context.px(9);
    text_mid(context, {te_x, label_y}, te_name, {Role::muted}, {Face::mono, 13});

    const float words = text_width(context, value_text(value, options.format), {Face::mono, 13});
    const float field_width = std::round(std::max(context.px(72), words + context.px(18)));
    const Rect field{area.x1 - field_width, area.y0, area.x1, area.y0 + std::round(context.px(24))};
    const std::string id(name);
    if (const auto typed =
            value_field(context, id + ".value", field, value, value_text(value, options.format))) {
        value = std::clamp(*typed, min, max);
        if (options.step >= 1) value = snap(value, range, options.step);
    }

    const float y = area.y0 + context.px(40);
    const Rect track{area.x0 + context.px(kKnob), y, area.x1 - context.px(kKnob), y};
    const Press hit = press(context, name, {area.x0, y - context.px(10), area.x1, y + context.px(10)});
    if (hit.held)
        value = snap(range.at((ImGui::GetIO().MousePos.x - track.x0) / track.width()), range, options.step);
    if (hit.focused) {
        if (key_pressed(Key::right)) value = nudge(value, range, options.step, 1);
        if (key_pressed(Key::left)) value = nudge(value, range, options.step, -1);
        if (key_pressed(Key::home)) value = min;
        if (key_pressed(Key::end)) value = max;
    }
    draw_track(context, area, track, range, value, options);
    advance(area);
    return value != before;
}

}  // namespace fp8lab::ui
