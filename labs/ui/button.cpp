// Button, tabs, badge, divider.
#include <algorithm>
#include <cmath>

#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab::ui {

bool button(Context& context, std::string_view name, std::string_view label, ButtonOptions options) {
    const Font font{options.primary ? Face::sans_bold : Face::sans, 15};
    const Font key_font{Face::mono, 13};
    const float words = text_width(context, label, font);
    const float hint = options.key.empty() ? 0 : context.px(12) + text_width(context, options.key, key_font);
    Rect area = next_area(context, 32);
    if (options.width > 0) area.x1 = area.x0 + std::round(context.px(options.width));
    if (options.width == 0)
        area.x1 = area.x0 + std::round(words + hint + context.px(options.key.empty() ? 40 : 24));

    Press hit;
    if (options.disabled) {
        probe(context, name, area);
    } else {
        hit = press(context, name, area);
    }
    const bool lit = hit.hovered || hit.held;
    fill_rect(context, area, {options.primary ? Role::accent : Role::field}, 6);
    if (!options.primary) stroke_rect(context, area, {lit ? Role::axis : Role::line}, 6);
    const Role ink = options.disabled ? Role::muted : options.primary ? Role::inverse : Role::text;
    const float x = std::round((area.x0 + area.x1 - words - hint) / 2);
    const float y = (area.y0 + area.y1) / 2;
    text_mid(context, {x, y}, label, {ink}, font);
    // On the accent the hint is quieter than the words by opacity: muted is made for the field's grey.
    const Color key_ink = options.primary ? Color{Role::inverse, Tone::line, 0.75F} : Color{Role::muted};
    if (!options.key.empty())
        text_mid(context, {x + words + context.px(12), y}, options.key, key_ink, key_font);
    advance(area);
    if (options.disabled && !options.why_disabled.empty()) tooltip(context, label, options.why_disabled);
    return hit.clicked;
}

bool tabs(Context& context, std::string_view name, std::span<const std::string> labels, int& selected,
          Rect area) {
    const int before = selected;
    float x = area.x0;
    hline(context, area.x0, area.x1, area.y1 - hairline(context), {Role::line});
    for (std::size_t i = 0; i < labels.size(); ++i) {
        const bool on = static_cast<int>(i) == selected;
        const Font font{on ? Face::sans_bold : Face::sans, 15};
        const float width = text_width(context, labels[i], font);
        const Rect hit_area{x - context.px(4), area.y0, x + width + context.px(4), area.y1 - context.px(2)};
        const Press hit = press(context, std::string(name) + "." + labels[i], hit_area, 4);
        if (hit.clicked) selected = static_cast<int>(i);
        text_mid(context, {x, (area.y0 + area.y1) / 2}, labels[i],
                 {on || hit.hovered ? Role::text : Role::muted}, font);
        if (on) fill_rect(context, {x, area.y1 - context.px(2), x + width, area.y1}, {Role::text});
        x += std::round(width + context.px(24));
    }
    return selected != before;
}

std::string_view badge_words(Provenance provenance) {
    switch (provenance) {
        case Provenance::tensor_core:
            return "TENSOR CORE";
        case Provenance::gpu_emulated:
            return "GPU EMULATED";
        case Provenance::cpu_emulated:
            return "CPU EMULATED";
        case Provenance::recorded:
            return "RECORDED";
    }
    return "";
}

void badge_glyph(Context& context, Provenance provenance, Point center) {
    const Color ink{Role::text};
    const float reach = context.px(4);
    const Rect glyph{std::round(center.x - reach), std::round(center.y - reach), std::round(center.x + reach),
                     std::round(center.y + reach)};
    if (provenance == Provenance::recorded) {
        ImGui::GetWindowDrawList()->AddCircle({center.x, center.y}, reach, context.color(ink), 0,
                                              context.px(1.5F));
    } else if (provenance == Provenance::tensor_core) {
        fill_rect(context, glyph, ink);
    } else {
        stroke_rect(context, glyph, ink, 0, 1.5F);
        const float middle = (glyph.y0 + glyph.y1) / 2;
        if (provenance == Provenance::gpu_emulated)
            fill_rect(context, {glyph.x0, middle, glyph.x1, glyph.y1}, ink);
    }
}

void badge(Context& context, Provenance provenance) {
    constexpr Font kFont{Face::mono_bold, 13};
    const std::string_view words = badge_words(provenance);
    Rect area = next_area(context, 24);
    area.x1 = area.x0 + std::round(text_width(context, words, kFont) + context.px(33));
    stroke_rect(context, area, {Role::axis}, 4);
    const float y = (area.y0 + area.y1) / 2;
    badge_glyph(context, provenance, {area.x0 + context.px(13), y});
    text_mid(context, {area.x0 + context.px(25), y}, words, {Role::text}, kFont);
    probe(context, "badge", area);
    advance(area);
}

void divider(Context& context) {
    const Rect area = next_area(context, 17);
    hline(context, area.x0, area.x1, (area.y0 + area.y1) / 2, {Role::line});
    advance(area);
}

}  // namespace fp8lab::ui
