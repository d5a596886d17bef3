// The default control of a field, from the field table alone.
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab::ui {
namespace {

constexpr std::size_t kMostSegments = 4;

void caption(Context& context, const Field& field) {
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
    const Rect area = next_area(context, 26);
    const float y = area.y0 + context.px(14);
    text_mid(context, {area.x0, y}, field.info.label, {Role::muted}, {Face::sans, 13});
    const float x = area.x0 + text_width(context, field.info.label, {Face::sans, 13}) + context.px(8);
    text_mid(context, {x, y}, field.info.te_name, {Role::muted}, {Face::mono, 13});
    advance(area);
    ImGui::PopStyleVar();
}

void field_tooltip(Context& context, const Field& field) {
    std::string body = field.info.help;
    if (field.max > field.min) {
        body += (body.empty() ? "" : " ") + format_number(field.min, 4, true) + " to " +
                format_number(field.max, 4, true);
        body += (field.info.unit.empty() ? "" : " " + field.info.unit) + ".";
    }
    if (!field.info.te_name.empty()) body += " Transformer Engine: " + field.info.te_name + ".";
    if (!body.empty()) tooltip(context, field.info.label, body);
}

std::optional<double> number_of(const Field* field) {
    if (field == nullptr) return std::nullopt;
    if (auto* const* real = std::get_if<double*>(&field->value)) return **real;
    if (auto* const* whole = std::get_if<int*>(&field->value)) return **whole;
    return std::nullopt;
}

bool edit_number(Context& context, const Field& field, const Field* default_field) {
    double value = *number_of(&field);
    auto* const* whole = std::get_if<int*>(&field.value);
    const SliderOptions options{.logarithmic = field.logarithmic,
                                .step = whole != nullptr ? 1.0 : 0.0,
                                .default_value = number_of(default_field)};
    if (!slider(context, field.info.name, field.info.label, field.info.te_name, value, field.min, field.max,
                options))
        return false;
    if (whole != nullptr) {
        **whole = static_cast<int>(std::lround(value));
    } else {
        *std::get<double*>(field.value) = value;
    }
    return true;
}

bool edit_toggle(Context& context, const Field& field, bool& value) {
    const Rect row = next_area(context, 32);
    const Font font{Face::sans, 15};
    const float y = (row.y0 + row.y1) / 2;
    text_mid(context, {row.x0, y}, field.info.label, {Role::text}, font);
    text_mid(context, {row.x0 + text_width(context, field.info.label, font) + context.px(9), y},
             field.info.te_name, {Role::muted}, {Face::mono, 13});
    const Rect box{row.x1 - context.px(48), row.y0 + context.px(4), row.x1, row.y1 - context.px(4)};
    const Press hit = press(context, field.info.name, box, 12);
    if (hit.clicked) value = !value;
    // A switch is a slider with two places: the same track and knob.
    fill_rect(context, box, {value ? Role::text : Role::field}, 12);
    stroke_rect(context, box, {hit.hovered ? Role::axis : Role::line}, 12);
    const float knob = value ? box.x1 - context.px(12) : box.x0 + context.px(12);
    ImGui::GetWindowDrawList()->AddCircleFilled({knob, y}, context.px(8),
                                                context.color(value ? Role::inverse : Role::text));
    advance(row);
    return hit.clicked;
}

bool edit_choice(Context& context, const Field& field, std::string& value) {
    std::vector<std::string> labels;
    int selected = -1;
    float widest = 0;
    for (const auto& choice : field.choices) {
        if (choice.id == value) selected = static_cast<int>(labels.size());
        labels.push_back(choice.label);
        widest = std::max(widest, text_width(context, choice.label, {Face::sans_bold, 15}));
    }
    caption(context, field);
    const float room = next_area(context, 32).width() / static_cast<float>(labels.size()) - context.px(12);
    const bool short_choices = labels.size() <= kMostSegments && widest <= room;
    const bool changed = short_choices ? segmented(context, field.info.name, labels, selected)
                                       : dropdown(context, field.info.name, labels, selected);
    if (changed) value = field.choices[static_cast<std::size_t>(selected)].id;
    return changed;
}

bool edit_text(Context& context, const Field& field, std::string& value) {
    caption(context, field);
    return text_input(context, field.info.name, value, {}, {Face::mono, 13});
}

// What a scene holds fast: its value, without a control.
void show_locked(Context& context, const Field& field) {
    const Rect row = next_area(context, 32);
    const float y = (row.y0 + row.y1) / 2;
    text_mid(context, {row.x0, y}, field.info.label, {Role::muted}, {Face::sans, 15});
    std::string value = field_text(field);
    for (const Choice& choice : field.choices)
        if (choice.id == value) value = choice.label;
    text_mid(context, {row.x1, y}, value, {Role::text}, {Face::mono, 13}, Anchor::right);
    probe(context, field.info.name + ".locked", row);
    advance(row);
    tooltip(context, field.info.label, "The scene holds it fast; Reset all lets go.");
}

}  // namespace

void disclosure(Context& context, std::string_view name, std::string_view label, bool& open) {
    const Rect row = next_area(context, 24);
    const Press hit = press(context, name, row);
    if (hit.clicked) open = !open;
    const Color ink{hit.hovered ? Role::text : Role::muted};
    const float y = (row.y0 + row.y1) / 2;
    chevron(context, {row.x0 + context.px(5), y}, open ? Direction::down : Direction::right, ink);
    text_mid(context, {row.x0 + context.px(20), y}, label, ink, {Face::sans, 13});
    advance(row);
}

bool withheld(Context& context, const Field& field) {
    const auto listed = [&](const std::vector<std::string>& names) {
        return std::ranges::find(names, field.info.name) != names.end();
    };
    if (listed(context.hidden)) return true;
    if (!listed(context.locked)) return false;
    show_locked(context, field);
    return true;
}

bool edit(Context& context, const Field& field, const Field* default_field) {
    if (withheld(context, field)) return false;
    bool changed = false;
    if (auto* const* flag = std::get_if<bool*>(&field.value)) {
        changed = edit_toggle(context, field, **flag);
    } else if (auto* const* words = std::get_if<std::string*>(&field.value)) {
        changed =
            field.choices.empty() ? edit_text(context, field, **words) : edit_choice(context, field, **words);
    } else {
        changed = edit_number(context, field, default_field);
    }
    field_tooltip(context, field);
    return changed;
}

}  // namespace fp8lab::ui
