// The mouse in a plot: changes the view, draws nothing.
#pragma once

#include "labs/ui/plot/plot.h"

namespace fp8lab::ui {

struct Pointer {
    Point at;  // logical px
    bool over_plot = false;
    bool clicked = false;  // released without a drag
};

// Submits the plot's item under `name` and applies pan, zoom, box and fit to `state`.
Pointer handle_mouse(Context& context, std::string_view name, const FigureLayout& layout, PlotState& state);

// Legend items: click hides, double click isolates. Tooltip: what the series leaves out (NaN, Inf, <= 0).
void handle_legend(Context& context, std::string_view name, const Figure& figure, const FigureLayout& layout,
                   PlotState& state);

}  // namespace fp8lab::ui
