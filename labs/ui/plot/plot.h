// A Figure on screen. Left drag pans, right drag zooms to the box, the wheel zooms at the cursor (Shift: x only, Ctrl: y
// only, over an axis: that axis), double click fits and follows again, Esc cancels a box, a click in the legend hides a
// series, a double click isolates it. Hovering shows the crosshair and the exact values of the nearest points.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/figure/figure.h"
#include "labs/ui/context.h"

namespace fp8lab::ui {

// Owned by the view. `follow`: the x axis fits the data until the user pans or zooms; double click turns it on again.
struct PlotState {
    View2D view;
    bool follow = true;
    std::optional<double> cursor_x;       // linked crosshair: share one PlotState's cursor with figures of the same x
    struct Drag { bool active = false; bool box = false; Point start; View2D view; } drag;
};

struct PlotOptions {
    bool bare = false;                    // thumbnail: no ticks, legend, title or interaction
    bool interactive = true;
    bool crosshair = true;
    float y_tick_width = 44;              // left gutter, so that stacked figures share their edges
    float title_height = 28;
};

struct PlotResult {
    bool hovered = false;
    std::optional<double> cursor_x, cursor_y;            // data coordinates under the mouse
    struct Hit { std::size_t series, index; double x, y; };
    std::optional<Hit> nearest;                          // within 12 px
    std::optional<Hit> clicked;                          // nearest (or heatmap cell: index) when clicked without a drag
    Rect area;                                           // the plot rectangle inside the axes, physical px
    // data -> physical px and back, for handles that a view draws on top
    Point to_px(double x, double y) const;
    double x_at(float px) const;
    double y_at(float px) const;
    AxisSpec x_axis, y_axis;
    Extents extents;
};

// Draws in `rect` (physical px) and handles input. Probes: "<name>" the plot area, "<name>.legend.<series>".
PlotResult plot(Context&, std::string_view name, const Figure& figure, PlotState& state, Rect rect, PlotOptions options = {});

}  // namespace fp8lab::ui
