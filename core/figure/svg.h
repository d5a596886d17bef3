// A figure as an SVG file: text stays text (Inter, JetBrains Mono), the parameters travel in <metadata>.
//   write_file("loss.svg", to_svg(figure, {.theme = Theme::light}));
#pragma once

#include <string>

#include "core/figure/paint.h"

namespace fp8lab {

struct SvgOptions {
    float width = 812, height = 420;  // px; the stage of a 1440 px window
    Theme theme = Theme::light;
    View2D view = {};
    PaintOptions paint = {};
    std::string id_prefix = {};  // of the ids in it: several figures in one HTML page need different ones
};

std::string to_svg(const Figure& figure, const SvgOptions& options = {});

}  // namespace fp8lab
