// A Figure on screen. Left drag pans, right drag zooms to the box, the wheel zooms at the cursor (Shift: x
// only, Ctrl: y only, over an axis: that axis), double click fits and follows again, as does the button "Whole
// view" that is there while a part is shown ("<name>.whole"), Esc cancels a box, a
// click in the legend hides a series, a double click isolates it. Hovering shows the crosshair and the exact
// values of the nearest samples.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>

#include "core/figure/paint.h"
#include "labs/ui/context.h"

namespace fp8lab::ui {

// Owned by the view. `follow`: the x axis fits the data, whatever view.x says, until the user pans or zooms
// it; double click turns it on again.
struct PlotState {
    View2D view;
    bool follow = true;
    std::optional<double> cursor_x;  // where the crosshair stands
    bool cursor_here = false;        // the mouse is in this figure; linked figures follow its cursor
    struct Drag {
        bool active = false;
        bool box = false;
        Point start;   // logical px
        Point moved;   // farthest distance so far, to tell a click from a drag
        Extents from;  // what was shown at the start
    } drag;
};

// One crosshair through figures of the same x: call once a frame, before drawing them.
void link_cursors(std::initializer_list<PlotState*> states);

struct PlotOptions {
    bool bare = false;  // thumbnail: no ticks, legend, title or interaction
    bool interactive = true;
    bool crosshair = true;
    float y_tick_width = 44;  // left gutter, so that stacked figures share their edges
    float title_height = 28;
    const Figure* below = nullptr;  // shares x: its values join this figure's tooltip
};

struct PlotResult {
    bool hovered = false;
    std::optional<double> cursor_x, cursor_y;  // data coordinates under the mouse
    struct Hit {
        std::size_t series, index;
        double x, y;
    };
    std::optional<Hit> nearest;  // within 12 px; in a heatmap the cell: index row-major, x column, y row
    std::optional<Hit> clicked;  // nearest when clicked without a drag
    Rect area;                   // the plot rectangle inside the axes, physical px
    Axis x, y;                   // data <-> physical px, for handles that a view draws on top
    Extents extents;

    Point to_px(double data_x, double data_y) const {
        return {static_cast<float>(x.to_px(data_x)), static_cast<float>(y.to_px(data_y))};
    }
    double x_at(float px) const { return x.from_px(static_cast<double>(px)); }
    double y_at(float px) const { return y.from_px(static_cast<double>(px)); }
};

// Draws in `rect` (physical px) and handles input. Probes: "<name>" the plot area, "<name>.legend.<series>".
PlotResult plot(Context&, std::string_view name, const Figure& figure, PlotState& state, Rect rect,
                PlotOptions options = {});

}  // namespace fp8lab::ui
