#include "labs/ui/plot/hover.h"

#include <algorithm>
#include <cmath>

#include "core/base/units.h"

namespace fp8lab::ui {

namespace {

using Hit = PlotResult::Hit;
constexpr double kReach = 12;  // px

// The samples of what has samples: curves, points, stems, and bars (x: the lower edge).
struct Samples {
    std::span<const double> x, y;
    bool holds = false;  // the value at x holds until the next x
};

Samples samples_of(const Series& series) {
    Samples out;
    std::visit(
        [&](const auto& shape) {
            if constexpr (requires { shape.x->size(), shape.y->size(); }) {
                if (shape.x && shape.y) out = {*shape.x, *shape.y, series.style.step};
            } else if constexpr (requires { shape.edges; }) {
                if (shape.edges && shape.heights) out = {*shape.edges, *shape.heights, true};
            }
        },
        series.shape);
    const std::size_t n = std::min(out.x.size(), out.y.size());
    return {out.x.first(n), out.y.first(n), out.holds};
}

// The samples with x in [from, to] and 64 on either side (a longer gap has no value to show); all where x is
// unsorted.
std::array<std::size_t, 2> candidates(std::span<const double> xs, double from, double to) {
    constexpr std::size_t kMargin = 64;
    if (!std::is_sorted(xs.begin(), xs.end())) return {0, xs.size()};
    const auto first = static_cast<std::size_t>(std::lower_bound(xs.begin(), xs.end(), from) - xs.begin());
    const auto last = static_cast<std::size_t>(std::upper_bound(xs.begin(), xs.end(), to) - xs.begin());
    return {first - std::min(first, kMargin), std::min(last + kMargin, xs.size())};
}

// The neighbours of `at` on both sides, then the closer in pixels.
std::optional<Hit> sample_at(const Figure& figure, std::size_t index, const Axis& axis, double at) {
    const Samples samples = samples_of(figure.series[index]);
    std::optional<std::size_t> left, right;
    const auto [begin, end] = candidates(samples.x, at, at);
    for (std::size_t i = begin; i < end; ++i) {
        const double x = samples.x[i];
        if (std::isnan(samples.y[i])) continue;
        if (x <= at && (!left || x >= samples.x[*left])) left = i;
        if (x > at && (!right || x < samples.x[*right])) right = i;
    }
    if (!left && (!right || samples.holds)) return {};
    const double px = axis.to_px(at);
    const auto distance = [&](std::size_t i) { return std::fabs(axis.to_px(samples.x[i]) - px); };
    const bool take_right = right && !samples.holds && (!left || distance(*right) < distance(*left));
    const std::size_t i = take_right ? *right : *left;
    return Hit{index, i, samples.x[i], samples.y[i]};
}

// A value of a narrow format, such as 0.001953125, has few digits and is shown as it is. Other numbers have
// as many digits as on the axes and in tables; the copy of a figure's table has all.
std::string shown(double value) {
    constexpr std::size_t kMostLetters = 12;  // "0.001953125" of E4M3
    constexpr double kGrid = 65536;           // values of 8 bits are multiples of 2^-16
    std::string exact = shortest(value);
    const bool narrow = exact.size() <= kMostLetters && std::floor(value * kGrid) == value * kGrid;
    return narrow ? exact : format_number(value, 4);
}

std::optional<Hit> heatmap_cell(const Series& series, std::size_t index, const FigureLayout& layout,
                                Point at) {
    const auto* map = std::get_if<HeatmapSeries>(&series.shape);
    if (map == nullptr || !map->values) return {};
    const double x = std::floor(layout.x.from_px(static_cast<double>(at.x)) - map->x0),
                 y = layout.y.from_px(static_cast<double>(at.y));
    const double row = std::floor(map->y_down ? map->rows - y : y);
    if (!(x >= 0 && x < map->cols && row >= 0 && row < map->rows)) return {};
    return Hit{
        index,
        static_cast<std::size_t>(row) * static_cast<std::size_t>(map->cols) + static_cast<std::size_t>(x), x,
        row};
}

// Curves that a reader can name: in the legend or labelled at their end. Thin raw data behind a mean are
// neither.
bool is_named(const Series& series) {
    return !display_name(series).empty() && (series.style.in_legend || !series.style.end_label.empty());
}

struct Row {
    std::string name, value;
    Color ink;
};

void draw_tooltip(Canvas& canvas, const FigureLayout& layout, float line_x, const Row& head,
                  const std::vector<Row>& rows) {
    constexpr float kTipPad = 12, kTipRow = 22, kTipWidth = 152;
    const float label = head.name.empty() ? 0 : canvas.text_width(head.name + " ", kSans13);
    float width = std::max(kTipWidth, 2 * kTipPad + label + canvas.text_width(head.value, kMono13));
    for (const Row& row : rows)
        width = std::max(width, 2 * kTipPad + canvas.text_width(row.name, kBold13) + 16 +
                                    canvas.text_width(row.value, kMono13));
    const float height = 2 * kTipPad - 4 + kTipRow * static_cast<float>(rows.size() + 1);
    const bool flip = line_x + 16 + width > layout.outer.x1;
    Rect box = {flip ? line_x - 16 - width : line_x + 16, layout.plot.y0 + 12, 0, 0};
    box = {box.x0, box.y0, box.x0 + width, box.y0 + height};
    canvas.rect(box, Color{Role::axis});
    canvas.rect(Rect{box.x0 + 1, box.y0 + 1, box.x1 - 1, box.y1 - 1}, Color{Role::raised});
    float y = box.y0 + kTipPad - 1;
    canvas.text({box.x0 + kTipPad, y}, head.name, {Role::muted}, kSans13);
    canvas.text({box.x0 + kTipPad + label, y}, head.value, {Role::text}, kMono13);
    for (const Row& row : rows) {
        y += kTipRow;
        canvas.text({box.x0 + kTipPad, y}, row.name, row.ink, kBold13);
        canvas.text({box.x1 - kTipPad - canvas.text_width(row.value, kMono13), y}, row.value, {Role::text},
                    kMono13);
    }
}

std::vector<Hit> named_hits(const Figure& figure, const View2D& view, const Axis& x, double cursor_x) {
    std::vector<Hit> hits;
    for (std::size_t i = 0; i < figure.series.size(); ++i) {
        if (is_hidden(view, figure.series[i]) || !is_named(figure.series[i])) continue;
        if (const auto hit = sample_at(figure, i, x, cursor_x)) hits.push_back(*hit);
    }
    return hits;
}

// What the figure below adds: its y label says what the values are.
void add_below(std::vector<Row>& rows, const Figure& below, const Axis& x, double cursor_x) {
    const auto hits = named_hits(below, {}, x, cursor_x);
    for (const Hit& hit : hits) {
        std::string name = below.y.label;
        if (hits.size() > 1) name += " " + std::string(display_name(below.series[hit.series]));
        rows.push_back({std::move(name), shown(hit.y), {Role::text}});
    }
}

}  // namespace

std::optional<Hit> nearest_sample(const Figure& figure, const View2D& view, const FigureLayout& layout,
                                  Point at) {
    const double mx = static_cast<double>(at.x), my = static_cast<double>(at.y);
    const double from = layout.x.from_px(mx - kReach), to = layout.x.from_px(mx + kReach);
    double best = kReach;
    std::optional<Hit> out;
    for (std::size_t s = 0; s < figure.series.size(); ++s) {
        if (is_hidden(view, figure.series[s])) continue;
        if (const auto cell = heatmap_cell(figure.series[s], s, layout, at); cell && !out) out = cell;
        if (std::holds_alternative<BarSeries>(figure.series[s].shape)) continue;
        const Samples samples = samples_of(figure.series[s]);
        const auto [begin, end] = candidates(samples.x, from, to);
        for (std::size_t i = begin; i < end; ++i) {
            if (!(samples.x[i] >= from && samples.x[i] <= to)) continue;
            const double distance =
                std::hypot(layout.x.to_px(samples.x[i]) - mx, layout.y.to_px(samples.y[i]) - my);
            if (distance <= best) best = distance, out = Hit{s, i, samples.x[i], samples.y[i]};
        }
    }
    return out;
}

void draw_crosshair(Canvas& canvas, const Figure& figure, const View2D& view, const FigureLayout& layout,
                    double cursor_x, bool tooltip, const Figure* below) {
    const std::vector<Hit> hits = named_hits(figure, view, layout.x, cursor_x);
    if (hits.empty()) return;
    const Rect plot = layout.plot;
    const auto line_x = static_cast<float>(layout.x.to_px(hits.front().x));
    if (!(line_x >= plot.x0 && line_x <= plot.x1)) return;
    canvas.rect(Rect{line_x, plot.y0, line_x + 1, plot.y1}, Color{Role::axis});
    std::vector<Row> rows;
    for (const Hit& hit : hits) {
        const Series& series = figure.series[hit.series];
        rows.push_back(
            {std::string(display_name(series)), shown(hit.y), {series.style.color.role, Tone::ink}});
        const Point at = {static_cast<float>(layout.x.to_px(hit.x)),
                          static_cast<float>(layout.y.to_px(hit.y))};
        if (!std::holds_alternative<LineSeries>(series.shape) || !plot.contains(at)) continue;
        paint_marker(canvas, at, Marker::disc, 5.5F, {Role::surface});
        paint_marker(canvas, at, Marker::disc, 4, toned(series.style.color, Tone::fill));
    }
    if (!tooltip) return;
    if (below != nullptr) add_below(rows, *below, layout.x, cursor_x);
    draw_tooltip(canvas, layout, line_x, {figure.x.label, shown(hits.front().x), {}}, rows);
}

}  // namespace fp8lab::ui
