// What a colour stands for: the roles of look.md 2. Data names a role (a format, a recipe, a curve);
// core/figure/palette.h turns it into RGB for a theme.
#pragma once

namespace fp8lab {

// Interface roles, then data roles. Only data roles have a hue.
enum class Role {
    surface,
    raised,
    field,
    line,
    grid,
    axis,
    text,
    muted,
    accent,
    inverse,
    warning,
    truth,
    bf16,
    e4m3,
    e5m2,
    sat,
    under,
    block,
};

}  // namespace fp8lab
