#include "core/figure/figure.h"

#include <algorithm>
#include <cmath>

#include "core/figure/axis.h"

namespace fp8lab {

namespace {

constexpr double kPadding = 0.05;

// Least and greatest of the finite values, positive ones only on log axes. Plain comparisons: NaN fails them
// all, and the loop stays fast enough to run over a million points each frame.
struct Fitter {
    explicit Fitter(const AxisSpec& spec)
        : least(spec.scale == Scale::log2 || spec.scale == Scale::log10 ? 5e-324 : -1.7976931348623157e308) {}
    void add(std::span<const double> values) {
        double lo = range.lo, hi = range.hi;
        for (const double v : values) {
            const bool counts = v >= least && v <= 1.7976931348623157e308;
            lo = counts && v < lo ? v : lo;
            hi = counts && v > hi ? v : hi;
        }
        range = {lo, hi};
    }
    void add(const Data& values) {
        if (values) add(std::span<const double>(*values));
    }
    void add(double value) { add(std::span<const double>(&value, 1)); }
    bool empty() const { return range.lo > range.hi; }

    double least;
    Range range = {kInfinity, -kInfinity};
    bool padded = false;
    double base = kNan;  // bars stand on it: no padding beyond
};

struct Adder {
    Fitter &x, &y;
    void operator()(const LineSeries& s) const { points(s.x, s.y); }
    void operator()(const ScatterSeries& s) const { points(s.x, s.y); }
    void operator()(const StemSeries& s) const { points(s.x, s.y), y.add(s.base); }
    void operator()(const BarSeries& s) const { points(s.edges, s.heights), y.add(s.base), y.base = s.base; }
    void operator()(const BandSeries& s) const { points(s.x, s.lo), y.add(s.hi); }
    void operator()(const HeatmapSeries& s) const {  // cells touch the edges: no padding of its own
        x.add(s.x0), x.add(s.x0 + s.cols), y.add(0.0), y.add(s.rows);
    }
    template <class Mark>
    void operator()(const Mark&) const {}
    void points(const Data& xs, const Data& ys) const {
        x.add(xs), y.add(ys);
        x.padded = y.padded = true;
    }
};

Range padded(const AxisSpec& spec, const Fitter& fitter) {
    if (fitter.empty()) return fitter.least > 0 ? Range{1, 10} : Range{0, 1};
    const Range range = drawable(spec, fitter.range);
    if (!fitter.padded || range != fitter.range) return range;  // degenerate ranges come back widened already
    const Axis axis(spec, range, 0, 1);
    const double lo = range.lo == fitter.base ? range.lo : axis.from_px(-kPadding);
    const double hi = range.hi == fitter.base ? range.hi : axis.from_px(1 + kPadding);
    return drawable(spec, {lo, hi});
}

}  // namespace

Data data(std::vector<double> values) {
    return std::make_shared<const std::vector<double>>(std::move(values));
}

bool is_hidden(const View2D& view, const Series& series) {
    return std::find(view.hidden.begin(), view.hidden.end(), series.name) != view.hidden.end();
}

Extents fit(const Figure& figure, const View2D& view) {
    Fitter x(figure.x), y(figure.y);
    for (const Series& series : figure.series)
        if (!is_hidden(view, series)) std::visit(Adder{x, y}, series.shape);
    const auto choose = [](const AxisSpec& spec, const std::optional<Range>& wanted, const Fitter& fitter) {
        return wanted       ? drawable(spec, *wanted)
               : spec.range ? drawable(spec, *spec.range)
                            : padded(spec, fitter);
    };
    return {choose(figure.x, view.x, x), choose(figure.y, view.y, y)};
}

Figure& Figure::add(std::string name, Shape shape, Style style) {
    series.push_back({std::move(name), std::move(shape), std::move(style)});
    return *this;
}

Figure& Figure::line(std::string name, Data xs, Data ys, Style style) {
    return add(std::move(name), LineSeries{std::move(xs), std::move(ys)}, std::move(style));
}
Figure& Figure::scatter(std::string name, Data xs, Data ys, Style style) {
    return add(std::move(name), ScatterSeries{std::move(xs), std::move(ys)}, std::move(style));
}
Figure& Figure::stems(std::string name, Data xs, Data ys, Style style) {
    return add(std::move(name), StemSeries{std::move(xs), std::move(ys)}, std::move(style));
}
Figure& Figure::bars(std::string name, Data edges, Data heights, Style style, bool outline) {
    return add(std::move(name), BarSeries{std::move(edges), std::move(heights), 0, outline},
               std::move(style));
}
Figure& Figure::band(std::string name, Data xs, Data lo, Data hi, Style style) {
    return add(std::move(name), BandSeries{std::move(xs), std::move(lo), std::move(hi)}, std::move(style));
}
Figure& Figure::heatmap(std::string name, HeatmapSeries heatmap, Style style) {
    return add(std::move(name), std::move(heatmap), std::move(style));
}
Figure& Figure::vline(std::string name, double at, Style style) {
    return add(std::move(name), VLine{at}, std::move(style));
}
Figure& Figure::hline(std::string name, double at, Style style) {
    return add(std::move(name), HLine{at}, std::move(style));
}
Figure& Figure::xspan(std::string name, double lo, double hi, Style style) {
    return add(std::move(name), XSpan{lo, hi}, std::move(style));
}
Figure& Figure::yspan(std::string name, double lo, double hi, Style style) {
    return add(std::move(name), YSpan{lo, hi}, std::move(style));
}
Figure& Figure::text(double at_x, double at_y, std::string label, Style style, Anchor anchor) {
    return add({}, TextMark{at_x, at_y, std::move(label), anchor}, std::move(style));
}

}  // namespace fp8lab
