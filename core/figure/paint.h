// Lays a figure out and paints it: the anatomy of look.md 5, for screen and file alike.
//
//   title (a sentence)                          sample name  sample name
//   y label        bracket of a window
//     1 ---------- grid, at most 5 lines --------------
//   0.1 ----------                            end label
//       ______________________________________________  axis
//   x label   0         500        1000
#pragma once

#include "core/figure/axis.h"
#include "core/figure/canvas.h"
#include "core/figure/ticks.h"

namespace fp8lab {

struct PaintOptions {
    bool bare = false;        // thumbnail: the data fill the rectangle, nothing around them
    float y_tick_width = 44;  // left gutter; grows if a label is wider, so equal gutters mean equal edges
    float title_height = 28;  // 0 where title and legend are empty
};

struct LegendEntry {
    std::size_t series;  // index in Figure::series
    Rect rect;           // of the sample and the name
};

struct FigureLayout {
    Rect outer, plot;  // logical px
    Axis x, y;
    std::vector<Tick> x_ticks, y_ticks;
    std::vector<std::string> title;  // its lines
    std::vector<LegendEntry> legend;
    Point subtitle;
    bool bare = false;
    bool x_label_in_row = false;  // left of the tick labels; otherwise right-aligned below them
};

FigureLayout lay_out(const Figure& figure, const View2D& view, Canvas& canvas, Rect rect,
                     const PaintOptions& options = {});
void paint(const Figure& figure, const View2D& view, const FigureLayout& layout, Canvas& canvas);
void paint(const Figure& figure, const View2D& view, Canvas& canvas, Rect rect,
           const PaintOptions& options = {});

// What a series is called on screen: its name up to "##".
std::string_view display_name(const Series& series);
// A style's colour where it colours an area, a marker or words: `tone` replaces Tone::line.
Color toned(Color color, Tone tone);
void paint_marker(Canvas& canvas, Point at, Marker marker, float radius, Color color);
void paint_series(const Series& series, const FigureLayout& layout,
                  Canvas& canvas);  // data and marks, inside the plot, without their words

}  // namespace fp8lab
