// The nearest sample to the mouse, and the crosshair with its tooltip.
#pragma once

#include "labs/ui/plot/plot.h"

namespace fp8lab::ui {

// The sample within 12 px of `at`, or the heatmap cell there. Hidden series have none.
std::optional<PlotResult::Hit> nearest_sample(const Figure& figure, const View2D& view,
                                              const FigureLayout& layout, Point at);

// The line through the plot at the sample nearest to `cursor_x`, a dot on each curve, and with `tooltip` the
// exact values, those of the figure `below` among them.
void draw_crosshair(Canvas& canvas, const Figure& figure, const View2D& view, const FigureLayout& layout,
                    double cursor_x, bool tooltip, const Figure* below = nullptr);

}  // namespace fp8lab::ui
