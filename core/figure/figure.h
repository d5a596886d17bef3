// A figure as data: axes, series and marks, without pixels. paint() draws it on any Canvas (screen, SVG,
// recorder), to_csv() writes its numbers, so screen, export and test show the same.
//
//   Figure f{.id = "loss", .title = "The two curves stay together",
//            .x = {.label = "step"}, .y = {.label = "loss", .scale = Scale::log10}};
//   f.line("FP8", steps, loss, {.color = {Role::e4m3}, .width = 3});
//   f.hline("5 %", 5, {.color = {Role::axis}, .dash = Dash::dash});
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/figure/palette.h"

namespace fp8lab {

enum class Scale { linear, log2, log10, symlog };

struct Range {
    double lo = 0, hi = 1;
    bool operator==(const Range&) const = default;
};

// A break of a linear axis: the range from lo to hi is drawn in `width`, in units of the axis, with a sign of the
// break.
struct AxisBreak {
    double lo = 0, hi = 1, width = 0.1;
    bool holds(double value) const { return value > lo && value < hi; }
};

// Words below a place of an x axis that has no numbers; the last of several lines is a number of it, muted.
struct AxisName {
    double at = 0;
    std::string words = {};
    Color color = {Role::text, Tone::ink};
    bool strong = false;
};

struct AxisSpec {
    std::string label = {};  // with its unit, e.g. "gap %"
    Scale scale = Scale::linear;
    std::optional<Range> range = {};    // none: fitted to the data, 5 % padding
    double linear_threshold = 1.0;      // symlog: linear within +-this
    bool visible = true;                // tick labels and label
    std::optional<AxisBreak> gap = {};  // x axes
    std::vector<AxisName> names = {};   // x axes: instead of ticks
};

enum class Dash { solid, dash, dot, long_dash };  // dash 7-4 (bf16), dot 2-3 (block)
// The rings are outlines; bar: a horizontal one.
enum class Marker {
    none,
    disc,
    ring,
    square,
    square_ring,
    triangle_up,
    triangle_down,
    diamond,
    diamond_ring,
    bar
};

struct Style {
    Color color = {Role::truth, Tone::line, 1.0F};
    float width = 2.0F;  // px at scale 1; 1 hairline, 2 curve, 3 the curve that carries the message
    Dash dash = Dash::solid;
    Marker marker = Marker::none;
    float marker_size = 4.0F;  // radius, px
    bool step = false;         // lines: horizontal-then-vertical (a value that holds until the next x)
    bool in_legend = true;
    std::string end_label = {};  // drawn at the curve's last point in its ink: "FP8 0.0411"
};
inline const Style kHairline = {.color = {Role::axis}, .width = 1};

// Data are shared, immutable arrays: a figure of a running training is rebuilt each frame without copying its
// series.
using Data = std::shared_ptr<const std::vector<double>>;
Data data(std::vector<double> values);

// Where a style leaves the tone at `line`, the shape chooses it: fill for areas and markers, tint for spans
// and bands, ink for words.
//
// NaN in x or y interrupts the line; Inf is clipped at the edge; the legend's tooltip counts both.
struct LineSeries {
    Data x = {}, y = {};
};
struct ScatterSeries {
    Data x = {}, y = {};
};
struct StemSeries {
    Data x = {}, y = {};
    double base = 0;
};
struct BarSeries {
    Data edges = {}, heights = {};  // n + 1 edges of n bars
    double base = 0;
    bool outline = false;  // a step line instead of filled bars
};
// The filled area between two curves.
struct BandSeries {
    Data x = {}, lo = {}, hi = {};
};
struct HeatmapSeries {  // cells row-major, row 0 at the bottom of the y axis unless y_down
    int rows = 0, cols = 0;
    Data values = {};  // mapped lo..hi to color's tint..fill; NaN: surface with a line border
    double lo = 0, hi = 1;
    bool y_down = true;                    // row 0 on top
    std::vector<std::string> labels = {};  // empty, or one a cell
    bool diverging = false;                // lo..0..hi as blue-white-orange
    double x0 = 0;                         // where column 0 begins: several maps side by side
    bool grey = false;                     // a picture: lo black, hi white, in every theme
    std::optional<Color> zero = {};        // cells whose value is 0; none: as the others
};
// Marks are ignored by the fit, the crosshair and the legend. Their name, where Style::in_legend, is drawn
// beside them: HLine at its right end, VLine at its top, XSpan over its bracket, YSpan at its left.
struct VLine {
    double x = 0;
};
struct HLine {
    double y = 0;
};
// A range of x over the full height of the plot.
struct XSpan {
    double lo = 0, hi = 0;
};
// A range of y over the full width.
struct YSpan {
    double lo = 0, hi = 0;
};
enum class Anchor { left, center, right };
// Words at a point, one entry per line; lines after the first are muted. They move off marks and into the plot, and
// are left out where they are wider than `room`, a range of x.
struct TextMark {
    double x = 0, y = 0;
    std::string text = {};
    Anchor anchor = Anchor::left;
    bool strong = false;
    float dx = 0, dy = 0;
    std::optional<Range> room = {};
    std::optional<Color> ground =
        {};              // a fill that they stand on: they take the colour that is legible there
    bool boxed = false;  // on a rectangle of the surface's colour: words over many dots or lines
};
// A 1 px bracket above [x0, x1] with its words.
struct Bracket {
    double x0 = 0, x1 = 0, y = 0;
    std::string text = {};
};

using Shape = std::variant<LineSeries, ScatterSeries, StemSeries, BarSeries, BandSeries, HeatmapSeries, VLine,
                           HLine, XSpan, YSpan, TextMark, Bracket>;

struct Series {
    std::string name = {};  // "name##id" as in ImGui: what follows ## is not shown
    Shape shape = {};
    Style style = {};
};

struct Figure {
    std::string id = {};        // in the file names of its exports; key of its view state
    std::string title = {};     // a sentence that states what the figure shows
    std::string subtitle = {};  // 13 px, right of the title where there is no legend: "thin: each batch"
    AxisSpec x = {}, y = {};
    std::vector<Series> series = {};
    std::vector<std::pair<std::string, std::string>> parameters =
        {};  // provenance, seed, fields: embedded in SVG and CSV
    // What to_words() says instead of a sentence per axis and series, where these are a drawing: a map of
    // cells.
    std::vector<std::string> words = {};

    Figure& add(std::string name, Shape shape, Style style = {});  // any shape; the rest are its short forms
    Figure& line(std::string name, Data xs, Data ys, Style style = {});
    Figure& scatter(std::string name, Data xs, Data ys, Style style = {});
    Figure& stems(std::string name, Data xs, Data ys, Style style = {});
    Figure& bars(std::string name, Data edges, Data heights, Style style = {}, bool outline = false);
    Figure& band(std::string name, Data xs, Data lo, Data hi, Style style = {});
    Figure& heatmap(std::string name, HeatmapSeries heatmap, Style style = {});
    Figure& vline(std::string name, double x, Style style = kHairline);
    Figure& hline(std::string name, double y, Style style = kHairline);
    Figure& xspan(std::string name, double lo, double hi, Style style = {});
    Figure& yspan(std::string name, double lo, double hi, Style style = {});
    Figure& text(double x, double y, std::string text, Style style = {}, Anchor anchor = Anchor::left);
};

// The part of a figure that is shown: axis ranges and hidden series. Owned by the caller.
struct View2D {
    std::optional<Range> x = {}, y = {};   // none: the axis' own range or the fit
    std::vector<std::string> hidden = {};  // series names
    bool operator==(const View2D&) const = default;
};

bool is_hidden(const View2D& view, const Series& series);

// Ranges that show all visible series with 5 % padding: what `View2D{}` shows. NaN and Inf are ignored, and
// values <= 0 on log axes. A single value gets centre +- max(0.5, 10 %).
struct Extents {
    Range x, y;
};
Extents fit(const Figure& figure, const View2D& view = {});

}  // namespace fp8lab
