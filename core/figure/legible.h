// What reads on what: the bounds of the themes, and how a fill keeps them.
#pragma once

#include "core/figure/palette.h"

namespace fp8lab {

// WCAG 2.1's ratio that a text needs on its ground: 4.5 (AA), in the projector and contrast themes 7 (AAA).
double text_contrast(Theme theme);
constexpr double kMarkContrast = 3;  // lines and markers on the surface (1.4.11)

// A data role's fill that says nothing on the surface without a 1 px border in its line value: look.md 2.
bool bordered(Theme theme, Role role);

// A fill with words on it, and their ink. An opacity over the surface at which neither light nor dark words
// read moves to the nearest at which one does.
struct Ground {
    Color fill, ink;
};
Ground ground_for_words(Theme theme, Color fill);

}  // namespace fp8lab
