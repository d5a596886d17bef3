// Colours by role and theme: the roles of look.md 2, once, for screen and file. Figures name roles,
// never RGB.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/role.h"

namespace fp8lab {

enum class Theme { dark, light, projector, contrast };
Theme parse_theme(std::string_view text, std::string_view where = "--theme");
std::string_view to_string(Theme);

struct Rgba {
    std::uint8_t r = 0, g = 0, b = 0, a = 255;
    bool operator==(const Rgba&) const = default;
};

// Data roles have three values and two tints. Interface roles ignore the tone.
enum class Tone {
    fill,  // areas and markers: Okabe-Ito's hex
    line,  // strokes, >= 3:1
    ink,   // text, >= 4.5:1 (projector 7:1)
    tint,  // translucent fill over surface: a format's window (.20 dark, .22 light, .28 projector)
    band,  // pass band (.12)
};

struct Color {
    Role role = Role::text;
    Tone tone = Tone::line;
    float opacity = 1.0F;  // raw data behind its mean: 0.20
    bool operator==(const Color&) const = default;
};

Rgba rgba(Theme theme, Color color);
Rgba blend(Rgba over, Rgba under);                        // `over` with its alpha on an opaque ground
double contrast_ratio(Rgba foreground, Rgba background);  // WCAG 2.1

}  // namespace fp8lab
