#include <algorithm>
#include <cmath>

#include "core/figure/paint_words.h"

namespace fp8lab {
namespace {

constexpr float kCell = 2;        // px
constexpr double kMarked = 1.47;  // between the tint of a window (1.4) and a hairline (1.5), look.md 3

Rect common(Rect a, Rect b) {
    return {std::max(a.x0, b.x0), std::max(a.y0, b.y0), std::min(a.x1, b.x1), std::min(a.y1, b.y1)};
}

}  // namespace

MarkedCanvas::MarkedCanvas(Canvas& canvas, Rect area)
    : canvas_(canvas),
      area_(area),
      columns_(static_cast<std::size_t>(std::max(area.width(), 0.0F) / kCell) + 1),
      rows_(static_cast<std::size_t>(std::max(area.height(), 0.0F) / kCell) + 1),
      cells_(columns_ * rows_),
      clips_{area} {}

bool MarkedCanvas::is_ground(Rgba fill) const {
    return contrast_ratio(fill, rgba(theme(), {Role::surface})) < kMarked;
}

void MarkedCanvas::mark(Rect rect) {
    const Rect r = common(rect, clips_.back());
    if (!(r.x0 < r.x1 && r.y0 < r.y1)) return;
    const auto cell = [](float px, std::size_t count) {
        return std::min(static_cast<std::size_t>(px / kCell), count - 1);
    };
    for (std::size_t y = cell(r.y0 - area_.y0, rows_); y <= cell(r.y1 - area_.y0, rows_); ++y)
        for (std::size_t x = cell(r.x0 - area_.x0, columns_); x <= cell(r.x1 - area_.x0, columns_); ++x)
            cells_[y * columns_ + x] = true;
}

bool MarkedCanvas::marked(Rect rect) const {
    const Rect r = common(rect, area_);
    if (!(r.x0 < r.x1 && r.y0 < r.y1)) return false;
    const auto cell = [](float px, std::size_t count) {
        return std::min(static_cast<std::size_t>(px / kCell), count - 1);
    };
    for (std::size_t y = cell(r.y0 - area_.y0, rows_); y <= cell(r.y1 - area_.y0, rows_); ++y)
        for (std::size_t x = cell(r.x0 - area_.x0, columns_); x <= cell(r.x1 - area_.x0, columns_); ++x)
            if (cells_[y * columns_ + x]) return true;
    return false;
}

void MarkedCanvas::line_strip(std::span<const Point> points, Color color, float width, Dash dash,
                              bool closed) {
    canvas_.line_strip(points, color, width, dash, closed);
    if (points.empty() || is_ground(rgba(theme(), color))) return;
    const float reach = width / 2;
    const auto segment = [&](Point a, Point b) {
        // Only its part inside the area: an end may be far away.
        const float length = std::hypot(b.x - a.x, b.y - a.y);
        if (!std::isfinite(length)) return;
        float from = 0, to = 1;
        const auto within = [&](float start, float step, float lo, float hi) {
            if (step == 0) return start >= lo && start <= hi;
            const auto [first, last] = std::minmax({(lo - start) / step, (hi - start) / step});
            from = std::max(from, first), to = std::min(to, last);
            return from <= to;
        };
        const Rect all = clips_.back();
        if (!within(a.x, b.x - a.x, all.x0 - reach, all.x1 + reach) ||
            !within(a.y, b.y - a.y, all.y0 - reach, all.y1 + reach))
            return;
        const auto steps = static_cast<int>(std::ceil((to - from) * length / kCell)) + 1;
        for (int i = 0; i <= steps; ++i) {
            const float t = from + (to - from) * static_cast<float>(i) / static_cast<float>(steps);
            const Point p = {a.x + t * (b.x - a.x), a.y + t * (b.y - a.y)};
            mark({p.x - reach, p.y - reach, p.x + reach, p.y + reach});
        }
    };
    for (std::size_t i = 1; i < points.size(); ++i) segment(points[i - 1], points[i]);
    if (closed) segment(points.back(), points.front());
}

void MarkedCanvas::rect(Rect rect, Rgba fill) {
    canvas_.rect(rect, fill);
    if (!is_ground(fill))
        mark({rect.x0, rect.y0, std::max(rect.x1, rect.x0 + 1), std::max(rect.y1, rect.y0 + 1)});
}

void MarkedCanvas::polygon(std::span<const Point> convex, Color fill) {
    canvas_.polygon(convex, fill);
    if (convex.empty() || is_ground(rgba(theme(), fill))) return;
    Rect box{convex[0].x, convex[0].y, convex[0].x, convex[0].y};
    for (const Point p : convex)
        box = {std::min(box.x0, p.x), std::min(box.y0, p.y), std::max(box.x1, p.x), std::max(box.y1, p.y)};
    mark(box);
}

void MarkedCanvas::push_clip(Rect rect) {
    canvas_.push_clip(rect);
    clips_.push_back(common(rect, clips_.back()));
}

void MarkedCanvas::pop_clip() {
    canvas_.pop_clip();
    clips_.pop_back();
}

}  // namespace fp8lab
