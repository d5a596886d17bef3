#include "core/figure/decimate.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace fp8lab {

namespace {

bool is_log(const AxisSpec& spec) { return spec.scale == Scale::log2 || spec.scale == Scale::log10; }

// Collects points and hands out the pieces inside the clip rectangle. In double: a neighbour may be 1e12 px
// away.
class Pen {
  public:
    Pen(bool step, Rect clip, const std::function<void(std::span<const Point>)>& run)
        : step_(step),
          x0_(static_cast<double>(clip.x0)),
          y0_(static_cast<double>(clip.y0)),
          x1_(static_cast<double>(clip.x1)),
          y1_(static_cast<double>(clip.y1)),
          run_(run) {}

    void to(double px, double py) {
        px = std::clamp(px, -kFar, kFar), py = std::clamp(py, -kFar, kFar);
        if (down_ && step_)
            segment(x_, y_, px, y_), segment(px, y_, px, py);
        else if (down_)
            segment(x_, y_, px, py);
        alone_ = !down_;
        down_ = true, x_ = px, y_ = py;
    }
    void up() {
        flush();
        const bool inside = x_ >= x0_ && x_ <= x1_ && y_ >= y0_ && y_ <= y1_;
        if (down_ && alone_ && inside) {
            const Point point = {static_cast<float>(x_), static_cast<float>(y_)};
            run_({&point, 1});
        }
        down_ = false;
    }

  private:
    static constexpr double kFar = 1e12;  // px; where Inf goes

    // Liang-Barsky: the part [t0, t1] of the segment that lies inside.
    void segment(double ax, double ay, double bx, double by) {
        double t0 = 0, t1 = 1;
        const auto cut = [&](double delta, double room) {  // keep t with delta * t <= room
            if (delta == 0) return room >= 0;
            const double t = room / delta;
            if (delta > 0)
                t1 = std::min(t1, t);
            else
                t0 = std::max(t0, t);
            return t0 <= t1;
        };
        const double dx = bx - ax, dy = by - ay;
        if (!cut(-dx, ax - x0_) || !cut(dx, x1_ - ax) || !cut(-dy, ay - y0_) || !cut(dy, y1_ - ay))
            return flush();
        if (t0 > 0) flush();
        if (points_.empty()) push(ax + t0 * dx, ay + t0 * dy);
        push(t1 < 1 ? ax + t1 * dx : bx, t1 < 1 ? ay + t1 * dy : by);
        if (t1 < 1) flush();
    }
    void push(double px, double py) {
        const Point p = {static_cast<float>(px), static_cast<float>(py)};
        // A strip with repeated points has segments without a direction, which a canvas cannot mitre.
        if (points_.empty() || p.x != points_.back().x || p.y != points_.back().y) points_.push_back(p);
    }
    void flush() {
        if (points_.size() > 1) run_(points_);
        points_.clear();
    }

    bool step_;
    double x0_, y0_, x1_, y1_;
    const std::function<void(std::span<const Point>)>& run_;
    std::vector<Point> points_;
    bool down_ = false, alone_ = false;
    double x_ = 0, y_ = 0;
};

// Streams samples into pixel columns. The column's edges are kept as data values, so that most samples cost a
// few comparisons and no logarithm; that needs no sorted x.
class Columns {
  public:
    Columns(std::span<const double> xs, std::span<const double> ys, const Axis& x, const Axis& y, Pen& pen)
        : xs_(xs), ys_(ys), x_(x), y_(y), pen_(pen) {}

    void add(std::size_t i) {
        if (!(xs_[i] >= lo_ && xs_[i] < hi_)) enter(xs_[i]);
        if (empty_) first_ = least_ = greatest_ = i, empty_ = false;
        if (ys_[i] < ys_[least_]) least_ = i;
        if (ys_[i] > ys_[greatest_]) greatest_ = i;
        last_ = i;
        after_gap_ = false;
    }
    void gap() {
        if (split_) {
            after_gap_ = true;
            return;
        }
        emit();
        pen_.up();
        split_ = true;
    }
    void emit() {
        if (empty_) return;
        std::array<std::size_t, 4> order = {first_, least_, greatest_, last_};
        std::sort(order.begin(), order.end());
        const auto end = std::unique(order.begin(), order.end());
        for (auto i = order.begin(); i != end; ++i) pen_.to(x_.to_px(xs_[*i]), y_.to_px(ys_[*i]));
        empty_ = true;
    }

  private:
    void enter(double x) {
        emit();
        if (after_gap_) pen_.up();
        split_ = after_gap_ = false;
        const double px = x_.to_px(x);
        if (px < x_.px_lo())
            lo_ = -kInfinity, hi_ = x_.range().lo;
        else if (px >= x_.px_hi())
            lo_ = x_.range().hi, hi_ = kInfinity;
        else
            lo_ = x_.from_px(std::floor(px)), hi_ = x_.from_px(std::floor(px) + 1);
        lo_ = std::min(lo_, x);  // rounding must not leave x outside its own column
        if (!(x < hi_)) hi_ = std::nextafter(x, kInfinity);
    }

    std::span<const double> xs_, ys_;
    const Axis &x_, &y_;
    Pen& pen_;
    double lo_ = 0, hi_ = 0;  // of the current column; none at first
    std::size_t first_ = 0, least_ = 0, greatest_ = 0, last_ = 0;
    bool empty_ = true, split_ = false, after_gap_ = false;
};

}  // namespace

void trace_line(std::span<const double> xs, std::span<const double> ys, const Axis& x, const Axis& y,
                bool step, Rect clip, const std::function<void(std::span<const Point>)>& run) {
    const std::size_t n = std::min(xs.size(), ys.size());
    const double least_x = is_log(x.spec()) ? 5e-324 : -kInfinity,
                 least_y = is_log(y.spec()) ? 5e-324 : -kInfinity;
    const auto drawable = [&](std::size_t i) {
        return xs[i] >= least_x && ys[i] >= least_y;
    };  // false for NaN
    Pen pen(step, clip, run);
    if (static_cast<double>(n) > 2 * (x.px_hi() - x.px_lo())) {
        Columns columns(xs, ys, x, y, pen);
        for (std::size_t i = 0; i < n; ++i) {
            if (drawable(i))
                columns.add(i);
            else
                columns.gap();
        }
        columns.emit();
    } else {
        for (std::size_t i = 0; i < n; ++i) {
            if (drawable(i))
                pen.to(x.to_px(xs[i]), y.to_px(ys[i]));
            else
                pen.up();
        }
    }
    pen.up();
}

Omitted count_omitted(const Series& series, const AxisSpec& x, const AxisSpec& y) {
    Omitted out;
    const auto count = [&](const Data& values, const AxisSpec& axis) {
        if (!values) return;
        for (const double v : *values) {
            out.nan += std::isnan(v);
            out.inf += std::isinf(v);
            out.not_positive += is_log(axis) && v <= 0;
        }
    };
    std::visit(
        [&](const auto& shape) {
            if constexpr (requires { shape.y, shape.x->size(); }) count(shape.x, x), count(shape.y, y);
            if constexpr (requires { shape.heights; }) count(shape.heights, y);
            if constexpr (requires { shape.values; }) count(shape.values, {});
            if constexpr (requires { shape.hi->size(); }) count(shape.lo, y), count(shape.hi, y);
        },
        series.shape);
    return out;
}

}  // namespace fp8lab
