#include "core/figure/legible.h"

#include <algorithm>

namespace fp8lab {
namespace {

constexpr int kLevels = 63;  // steps of the search, those of a heatmap's shades

struct Reading {
    Role ink;
    double contrast;
};
Reading best_ink(Theme theme, Color fill) {
    const Rgba ground = blend(rgba(theme, fill), rgba(theme, {Role::surface}));
    const double text = contrast_ratio(rgba(theme, {Role::text}), ground);
    const double inverse = contrast_ratio(rgba(theme, {Role::inverse}), ground);
    return text >= inverse ? Reading{Role::text, text} : Reading{Role::inverse, inverse};
}

}  // namespace

double text_contrast(Theme theme) { return theme == Theme::projector || theme == Theme::contrast ? 7 : 4.5; }

bool bordered(Theme theme, Role role) {
    const bool on_white = theme == Theme::light || theme == Theme::projector;
    return on_white && (role == Role::e4m3 || role == Role::under);
}

Ground ground_for_words(Theme theme, Color fill) {
    Ground best;
    for (int step = 0; step <= kLevels; ++step) {
        for (const int towards : {-step, step}) {
            Color moved = fill;
            const float by = static_cast<float>(towards) / static_cast<float>(kLevels);
            moved.opacity = std::clamp(fill.opacity + by, 0.0F, 1.0F);
            const Reading reading = best_ink(theme, moved);
            if (step == 0) best = {moved, {reading.ink}};
            if (reading.contrast >= text_contrast(theme)) return {moved, {reading.ink}};
        }
    }
    return best;  // unreachable: at opacity 0 the text reads on the surface
}

}  // namespace fp8lab
