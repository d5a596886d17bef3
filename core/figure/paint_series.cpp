#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "core/figure/decimate.h"
#include "core/figure/legible.h"
#include "core/figure/paint.h"

namespace fp8lab {

namespace {

constexpr float kBleed = 4;                 // strokes and markers on the plot's edge stay whole
constexpr std::size_t kFullMarkers = 2000;  // more are drawn as 2x2 px

Rect inflated(Rect r) { return {r.x0 - kBleed, r.y0 - kBleed, r.x1 + kBleed, r.y1 + kBleed}; }

class SeriesPainter {
  public:
    SeriesPainter(const Series& series, const FigureLayout& layout, Canvas& canvas)
        : series_(series), style_(series.style), layout_(layout), plot_(layout.plot), canvas_(canvas) {}

    void operator()(const LineSeries& s) const {
        if (!s.x || !s.y) return;
        strip(*s.x, *s.y, style_.step);
        if (style_.marker != Marker::none) markers(*s.x, *s.y, style_.marker);
    }
    void operator()(const ScatterSeries& s) const {
        if (s.x && s.y) markers(*s.x, *s.y, style_.marker == Marker::none ? Marker::disc : style_.marker);
    }
    void operator()(const StemSeries& s) const {
        if (!s.x || !s.y) return;
        const float base = base_px(s.base);
        for_visible(*s.x, *s.y, [&](Point p) {
            canvas_.rect(Rect{p.x - style_.width / 2, std::min(p.y, base), p.x + style_.width / 2,
                              std::max(p.y, base)},
                         style_.color);
        });
        if (style_.marker != Marker::none) markers(*s.x, *s.y, style_.marker);
    }
    void operator()(const BarSeries& s) const {
        if (!s.edges || !s.heights || s.edges->size() < 2) return;
        if (s.outline)
            outline(s);
        else
            bars(s);
    }
    void operator()(const BandSeries& s) const;
    void operator()(const HeatmapSeries& s) const;

    void operator()(const VLine& mark) const {
        const float x = x_px(mark.x);
        if (!(x >= plot_.x0 && x <= plot_.x1)) return;
        hairline({x, plot_.y0}, {x, plot_.y1});
    }
    void operator()(const HLine& mark) const {
        const float y = y_px(mark.y);
        if (!(y >= plot_.y0 && y <= plot_.y1)) return;
        hairline({plot_.x0, y}, {plot_.x1, y});
    }
    void operator()(const XSpan& mark) const {
        const float lo = end_px(x_px(mark.lo), plot_.x0), hi = end_px(x_px(mark.hi), plot_.x1);
        const float x0 = std::max(lo, plot_.x0), x1 = std::min(hi, plot_.x1);
        if (x0 >= x1) return;
        canvas_.rect(Rect{x0, plot_.y0, x1, plot_.y1}, toned(style_.color, Tone::tint));
        if (name().empty()) return;
        const Color stroke = {style_.color.role, Tone::line};
        canvas_.rect(Rect{x0, plot_.y0, x1, plot_.y0 + 2}, stroke);
        if (lo >= plot_.x0) canvas_.rect(Rect{x0, plot_.y0, x0 + 2, plot_.y0 + 8}, stroke);
        if (hi <= plot_.x1) canvas_.rect(Rect{x1 - 2, plot_.y0, x1, plot_.y0 + 8}, stroke);
    }
    void operator()(const YSpan& mark) const {
        const float y0 = std::max(end_px(y_px(mark.hi), plot_.y0), plot_.y0);
        const float y1 = std::min(end_px(y_px(mark.lo), plot_.y1), plot_.y1);
        if (y0 >= y1) return;
        canvas_.rect(Rect{plot_.x0, y0, plot_.x1, y1}, toned(style_.color, Tone::band));
    }
    void operator()(const TextMark&) const {}  // notes.cpp
    void operator()(const Bracket& mark) const {
        const float x0 = x_px(mark.x0), x1 = x_px(mark.x1), y = y_px(mark.y);
        if (!(x1 > plot_.x0 && x0 < plot_.x1 && y > plot_.y0 - kBleed && y < plot_.y1)) return;
        const Color stroke = {Role::axis};
        canvas_.rect(Rect{std::max(x0, plot_.x0), y, std::min(x1, plot_.x1), y + 1}, stroke);
        if (x0 >= plot_.x0) canvas_.rect(Rect{x0, y, x0 + 1, y + 8}, stroke);
        if (x1 <= plot_.x1) canvas_.rect(Rect{x1 - 1, y, x1, y + 8}, stroke);
    }

  private:
    float x_px(double value) const {
        return static_cast<float>(std::clamp(layout_.x.to_px(value), -1e6, 1e6));
    }
    float y_px(double value) const {
        return static_cast<float>(std::clamp(layout_.y.to_px(value), -1e6, 1e6));
    }
    static float end_px(float px, float otherwise) {
        return std::isnan(px) ? otherwise : px;
    }  // 0 on a log axis
    float base_px(double base) const { return std::min(end_px(y_px(base), plot_.y1), plot_.y1); }
    std::string_view name() const { return style_.in_legend ? display_name(series_) : std::string_view{}; }
    void hairline(Point a, Point b) const {
        const std::array<Point, 2> ends = {a, b};
        if (style_.dash != Dash::solid)
            return canvas_.line_strip(ends, style_.color, style_.width, style_.dash, false);
        const float wide = a.x == b.x ? style_.width : 0, high = a.x == b.x ? 0 : style_.width;
        canvas_.rect(Rect{a.x - wide / 2, a.y - high / 2, b.x + wide / 2, b.y + high / 2}, style_.color);
    }
    void strip(std::span<const double> xs, std::span<const double> ys, bool step) const {
        trace_line(xs, ys, layout_.x, layout_.y, step, inflated(plot_), [&](std::span<const Point> run) {
            if (run.size() > 1)
                canvas_.line_strip(run, style_.color, style_.width, style_.dash, false);
            else
                paint_marker(canvas_, run[0], Marker::disc, std::max(2.0F, style_.width), style_.color);
        });
    }
    template <class Visit>
    void for_visible(std::span<const double> xs, std::span<const double> ys, Visit visit) const {
        const Rect area = inflated(plot_);
        for (std::size_t i = 0; i < std::min(xs.size(), ys.size()); ++i) {
            const Point p = {x_px(xs[i]), y_px(ys[i])};
            if (area.contains(p)) visit(p);  // false for NaN
        }
    }
    void markers(std::span<const double> xs, std::span<const double> ys, Marker marker) const;
    void bars(const BarSeries& s) const;
    void outline(const BarSeries& s) const;
    Rgba heat(const HeatmapSeries& s, double value) const;

    const Series& series_;
    const Style& style_;
    const FigureLayout& layout_;
    Rect plot_;
    Canvas& canvas_;
};

void SeriesPainter::markers(std::span<const double> xs, std::span<const double> ys, Marker marker) const {
    const Color color = toned(style_.color, Tone::fill);
    std::size_t count = 0;
    for_visible(xs, ys, [&](Point) { ++count; });
    if (count <= kFullMarkers)
        return for_visible(xs, ys,
                           [&](Point p) { paint_marker(canvas_, p, marker, style_.marker_size, color); });
    // One 2x2 px square a place, however many points share it: a million points cost what the pixels cost.
    // There is no room for a border.
    const Color square = bordered(canvas_.theme(), color.role) ? toned(style_.color, Tone::line) : color;
    const Rect area = inflated(plot_);
    const auto columns = static_cast<std::size_t>(area.width() / 2) + 1,
               rows = static_cast<std::size_t>(area.height() / 2) + 1;
    std::vector<bool> taken(columns * rows);
    for_visible(xs, ys, [&](Point p) {
        const auto column = static_cast<std::size_t>((p.x - area.x0) / 2),
                   row = static_cast<std::size_t>((p.y - area.y0) / 2);
        if (taken[row * columns + column]) return;
        taken[row * columns + column] = true;
        const float x = area.x0 + 2 * static_cast<float>(column), y = area.y0 + 2 * static_cast<float>(row);
        canvas_.rect(Rect{x, y, x + 2, y + 2}, square);
    });
}

void SeriesPainter::bars(const BarSeries& s) const {
    const Color fill = toned(style_.color, Tone::fill);
    // look.md 2: orange and grey areas are too faint on white without a border.
    const bool border = fill.tone == Tone::fill && bordered(canvas_.theme(), fill.role);
    const float base = base_px(s.base);
    Rect pending;
    const auto draw = [&] {
        if (!(pending.x1 > pending.x0)) return;
        if (pending.width() > 3) pending.x1 -= 1;  // bars are set apart by a pixel
        if (border && pending.width() > 3) {
            canvas_.rect(pending, Color{fill.role, Tone::line, fill.opacity});
            pending = {pending.x0 + 1, pending.y0 + 1, pending.x1 - 1, pending.y1};
        }
        if (pending.y1 > pending.y0) canvas_.rect(pending, fill);
    };
    for (std::size_t i = 0; i + 1 < s.edges->size() && i < s.heights->size(); ++i) {
        const float x0 = std::max(end_px(x_px((*s.edges)[i]), plot_.x0), plot_.x0);
        const float x1 = std::min(x_px((*s.edges)[i + 1]), plot_.x1);
        const float y = y_px((*s.heights)[i]);
        if (!(x1 > x0) || std::isnan(y)) continue;
        const Rect bar = {x0, std::min(y, base), x1, std::max(y, base)};
        if (x1 - pending.x0 < 1 && pending.x1 > pending.x0) {  // many bars in one pixel column: their hull
            pending = {pending.x0, std::min(pending.y0, bar.y0), x1, std::max(pending.y1, bar.y1)};
            continue;
        }
        draw();
        pending = bar;
    }
    draw();
}

void SeriesPainter::outline(const BarSeries& s) const {
    const double base = std::isnan(layout_.y.to_px(s.base)) ? layout_.y.range().lo : s.base;
    std::vector<double> xs = {s.edges->front()}, ys = {base};
    for (std::size_t i = 0; i + 1 < s.edges->size() && i < s.heights->size(); ++i) {
        const double height = std::isnan(layout_.y.to_px((*s.heights)[i])) ? base : (*s.heights)[i];
        xs.insert(xs.end(), {(*s.edges)[i], (*s.edges)[i + 1]});
        ys.insert(ys.end(), {height, height});
    }
    xs.push_back(xs.back());
    ys.push_back(base);
    strip(xs, ys, false);
}

// One rectangle a pixel column, equal neighbours merged: translucent polygons would show their seams.
void SeriesPainter::operator()(const BandSeries& s) const {
    if (!s.x || !s.lo || !s.hi) return;
    const auto &xs = *s.x, &lo = *s.lo, &hi = *s.hi;
    const std::size_t n = std::min({xs.size(), lo.size(), hi.size()});
    const Color color = toned(style_.color, Tone::tint);
    Rect pending;
    const auto draw = [&] {
        if (pending.x1 > pending.x0 && pending.y1 > pending.y0) canvas_.rect(pending, color);
    };
    const auto low_px = [&](double value) {  // 0 on a log axis: the plot's lower edge
        const double at = layout_.y.to_px(value);
        return std::isnan(at) ? static_cast<double>(plot_.y1) : at;
    };
    const float first = std::floor(plot_.x0);
    std::size_t i = 0;  // the last sample at or left of the column's centre; x ascends
    // What is left of the view belongs to no column.
    while (i + 1 < n && xs[i + 1] <= layout_.x.from_px(static_cast<double>(first) - 0.5)) ++i;
    for (float px = first; px < plot_.x1; ++px) {
        const double at = layout_.x.from_px(static_cast<double>(px) + 0.5);
        const std::size_t before = i;
        while (i + 1 < n && xs[i + 1] <= at) ++i;
        if (n == 0 || xs[i] > at || (at > xs[n - 1])) continue;
        if (std::isnan(lo[i]) || std::isnan(hi[i])) continue;
        double low = low_px(lo[i]), high = layout_.y.to_px(hi[i]);
        if (i > before + 1) {  // several samples in this column: their hull
            low = low_px(*std::min_element(&lo[before + 1], &lo[i] + 1)),
            high = layout_.y.to_px(*std::max_element(&hi[before + 1], &hi[i] + 1));
        } else if (!style_.step && i + 1 < n) {  // straight in px, as a line is on any axis
            if (std::isnan(lo[i + 1]) || std::isnan(hi[i + 1])) continue;
            const double from = layout_.x.to_px(xs[i]), to = layout_.x.to_px(xs[i + 1]);
            const double t = (static_cast<double>(px) + 0.5 - from) / (to - from);
            low = std::lerp(low, low_px(lo[i + 1]), t);
            high = std::lerp(high, layout_.y.to_px(hi[i + 1]), t);
        }
        if (std::isnan(high) || std::isnan(low)) continue;
        const float y0 = static_cast<float>(std::max(high, static_cast<double>(plot_.y0))),
                    y1 = static_cast<float>(std::min(low, static_cast<double>(plot_.y1)));
        if (pending.x1 == px && pending.y0 == y0 && pending.y1 == y1) {
            pending.x1 = px + 1;
            continue;
        }
        draw();
        pending = {px, y0, px + 1, y1};
    }
    draw();
}

Rgba SeriesPainter::heat(const HeatmapSeries& s, double value) const {
    const Theme theme = canvas_.theme();
    const Rgba ground = rgba(theme, {Role::surface});
    if (s.grey) {
        const double t = std::clamp((value - s.lo) / std::max(s.hi - s.lo, 1e-300), 0.0, 1.0);
        const auto level = static_cast<std::uint8_t>(std::lround(255 * t));
        return {level, level, level};
    }
    if (s.zero && value == 0) return blend(rgba(theme, *s.zero), ground);
    const auto shade = [&](Role role, double t) {
        // 64 levels: neighbours that look the same become one rectangle
        const double level = std::round(std::clamp(t, 0.0, 1.0) * 63) / 63;
        Color fill = {role, Tone::fill, static_cast<float>(level)};
        if (!s.labels.empty()) fill = ground_for_words(theme, fill).fill;
        return blend(rgba(theme, fill), ground);
    };
    if (s.diverging)
        return value < 0 ? shade(Role::bf16, value / std::min(s.lo, -1e-300))
                         : shade(Role::e4m3, value / std::max(s.hi, 1e-300));
    return shade(style_.color.role, 0.12 + 0.88 * (value - s.lo) / std::max(s.hi - s.lo, 1e-300));
}

void SeriesPainter::operator()(const HeatmapSeries& s) const {
    const auto count =
        static_cast<std::size_t>(std::max(s.rows, 0)) * static_cast<std::size_t>(std::max(s.cols, 0));
    if (!s.values || count == 0 || s.values->size() < count) return;
    const auto column_px = [&](int c) { return x_px(s.x0 + c); };
    const auto row_px = [&](int r) {
        return s.y_down ? y_px(s.rows - r) : y_px(r + 1);
    };  // top edge of row r
    const float cell_width = column_px(1) - column_px(0), cell_height = y_px(0) - y_px(1);
    const float gap = !s.grey && std::min(cell_width, cell_height) >= 6 ? 1.0F : 0.0F;
    // Cells smaller than a pixel are sampled, one a pixel.
    const int column_step = std::max(1, static_cast<int>(1 / cell_width)),
              row_step = std::max(1, static_cast<int>(1 / cell_height));
    const Rgba empty = rgba(canvas_.theme(), {Role::surface}), border = rgba(canvas_.theme(), {Role::line});
    for (int r = 0; r < s.rows; r += row_step) {
        const float y0 = row_px(r), y1 = y0 + cell_height * static_cast<float>(row_step) - gap;
        if (y1 < plot_.y0 || y0 > plot_.y1) continue;
        for (int c = 0; c < s.cols;) {
            const auto cell = [&](int column) {
                return static_cast<std::size_t>(r) * static_cast<std::size_t>(s.cols) +
                       static_cast<std::size_t>(column);
            };
            const double value = (*s.values)[cell(c)];
            const Rgba color = std::isnan(value) ? empty : heat(s, value);
            int end = c + column_step;
            while (gap == 0 && end < s.cols && !std::isnan(value) && heat(s, (*s.values)[cell(end)]) == color)
                end += column_step;
            const Rect area = {column_px(c), y0, column_px(std::min(end, s.cols)) - gap, y1};
            if (std::isnan(value) && gap > 0) {
                canvas_.rect(area, border);
                canvas_.rect(Rect{area.x0 + 1, area.y0 + 1, area.x1 - 1, area.y1 - 1}, color);
            } else {
                canvas_.rect(area, color);
            }
            if (s.labels.size() == count && gap > 0) {
                const std::string& label = s.labels[cell(c)];
                const float width = canvas_.text_width(label, kMono13);
                const auto against = [&](Role role) {
                    return contrast_ratio(rgba(canvas_.theme(), {role}), color);
                };
                const Color ink = {against(Role::text) > against(Role::inverse) ? Role::text : Role::inverse};
                if (width <= area.width())
                    canvas_.text(
                        {(area.x0 + area.x1 - width) / 2, (area.y0 + area.y1) / 2 - line_height(kMono13) / 2},
                        label, ink, kMono13);
            }
            c = end;
        }
    }
}

bool is_outline(Marker marker) {
    return marker == Marker::ring || marker == Marker::square_ring || marker == Marker::diamond_ring;
}

}  // namespace

void paint_marker(Canvas& canvas, Point at, Marker marker, float radius, Color color) {
    if (color.tone == Tone::fill && marker != Marker::none && bordered(canvas.theme(), color.role)) {
        paint_marker(canvas, at, marker, radius, {color.role, Tone::line, color.opacity});
        if (is_outline(marker) || marker == Marker::bar) return;
        const bool pointed = marker == Marker::triangle_up || marker == Marker::triangle_down;
        radius -= pointed ? 2.0F : 1.0F;  // a border of 1 px: a triangle's sides are nearer than its corners
        if (radius <= 0) return;
    }
    const auto polygon = [&](std::span<const Point> unit, float size, Color fill) {
        std::vector<Point> points;
        for (const Point p : unit) points.push_back({at.x + size * p.x, at.y + size * p.y});
        canvas.polygon(points, fill);
    };
    constexpr std::size_t kSides = 16;
    const auto disc = [&](float size, Color fill) {
        std::array<Point, kSides> circle;
        for (std::size_t i = 0; i < kSides; ++i) {
            const float angle = 2 * std::numbers::pi_v<float> * static_cast<float>(i) / kSides;
            circle[i] = {std::cos(angle), std::sin(angle)};
        }
        polygon(circle, size, fill);
    };
    const auto square = [&](float size, Color fill) {
        canvas.rect(Rect{at.x - size, at.y - size, at.x + size, at.y + size}, fill);
    };
    const auto diamond = [&](float size, Color fill) {
        polygon(std::array<Point, 4>{Point{0, -1}, {1, 0}, {0, 1}, {-1, 0}}, size, fill);
    };
    constexpr float kTall = 0.87F;  // height of a triangle over its half base
    switch (marker) {
        case Marker::none:
            return;
        case Marker::disc:
            return disc(radius, color);
        case Marker::ring:
            disc(radius, color);
            return disc(radius - 1.5F, {Role::surface});
        case Marker::square:
            return square(radius, color);
        case Marker::square_ring:
            square(radius, color);
            return square(radius - 1.5F, {Role::surface});
        case Marker::bar:
            return canvas.rect(Rect{at.x - 1.4F * radius, at.y - 1.25F, at.x + 1.4F * radius, at.y + 1.25F},
                               color);
        case Marker::triangle_up:
            return polygon(std::array<Point, 3>{Point{0, -kTall}, {1, kTall}, {-1, kTall}}, radius, color);
        case Marker::triangle_down:
            return polygon(std::array<Point, 3>{Point{-1, -kTall}, {1, -kTall}, {0, kTall}}, radius, color);
        case Marker::diamond:
            return diamond(radius * 1.2F, color);
        case Marker::diamond_ring:
            diamond(radius * 1.2F, color);
            return diamond(radius * 1.2F - 2.1F, {Role::surface});  // 1.5 px wide
    }
}

void paint_series(const Series& series, const FigureLayout& layout, Canvas& canvas) {
    const bool data = series.shape.index() <= 5;  // marks may have words around the plot, and clip themselves
    if (data) canvas.push_clip(inflated(layout.plot));
    std::visit(SeriesPainter(series, layout, canvas), series.shape);
    if (data) canvas.pop_clip();
}

}  // namespace fp8lab
