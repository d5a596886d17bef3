// Contrast: the lower bounds of each theme, and fills on which text is legible (look.md 3).
#pragma once

#include "core/figure/palette.h"

namespace fp8lab {

// WCAG 2.1's ratio that a text needs on its ground: 4.5 (AA), in the projector and contrast themes 7 (AAA).
double text_contrast(Theme theme);
constexpr double kMarkContrast = 3;  // lines and markers on the surface (1.4.11)

// Whether a data role's fill has too little contrast on the surface and needs a 1 px border (look.md 2).
bool bordered(Theme theme, Role role);

// A fill with text on it, and the colour of that text. Where neither light nor dark text is legible at the
// given opacity, the opacity is changed to the nearest one at which it is.
struct Ground {
    Color fill, ink;
};
Ground ground_for_words(Theme theme, Color fill);

}  // namespace fp8lab
