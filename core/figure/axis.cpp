#include "core/figure/axis.h"

#include <algorithm>
#include <cmath>

namespace fp8lab {

namespace {

constexpr double kLargest = 1e300;    // hi - lo and hi / lo stay finite
constexpr double kSmallest = 1e-300;  // log axes: above the subnormals, whose ulp is no longer relative

bool is_log(Scale scale) { return scale == Scale::log2 || scale == Scale::log10; }

double squeezed(const AxisBreak& gap, double value) {
    if (value <= gap.lo) return value;
    const double share = std::min((value - gap.lo) / (gap.hi - gap.lo), 1.0);
    return gap.lo + share * gap.width + std::max(value - gap.hi, 0.0);
}
double stretched(const AxisBreak& gap, double coordinate) {
    const double beyond = coordinate - gap.lo;
    if (beyond <= 0) return coordinate;
    if (beyond <= gap.width) return gap.lo + beyond / gap.width * (gap.hi - gap.lo);
    return gap.hi + beyond - gap.width;
}

// Plain subtraction keeps every digit of a deep zoom.
bool is_plain(const AxisSpec& spec) { return spec.scale == Scale::linear && !spec.gap; }

double min_width(Range range) {
    const double end = std::max(std::fabs(range.lo), std::fabs(range.hi));
    return std::max(64 * (std::nextafter(end, kInfinity) - end),
                    1e-290);  // and 10^-k stays finite in the ticks
}

}  // namespace

double to_scale(const AxisSpec& spec, double value) {
    switch (spec.scale) {
        case Scale::linear:
            return spec.gap ? squeezed(*spec.gap, value) : value;
        case Scale::log2:
            return value > 0 ? std::log2(value) : kNan;
        case Scale::log10:
            return value > 0 ? std::log10(value) : kNan;
        case Scale::symlog:
            break;
    }
    const double size = std::fabs(value) / spec.linear_threshold;
    return size <= 1 ? value / spec.linear_threshold : std::copysign(1 + std::log10(size), value);
}

double from_scale(const AxisSpec& spec, double coordinate) {
    switch (spec.scale) {
        case Scale::linear:
            return spec.gap ? stretched(*spec.gap, coordinate) : coordinate;
        case Scale::log2:
            return std::exp2(coordinate);
        case Scale::log10:
            return std::pow(10.0, coordinate);
        case Scale::symlog:
            break;
    }
    const double size = std::fabs(coordinate);
    return spec.linear_threshold *
           (size <= 1 ? coordinate : std::copysign(std::pow(10.0, size - 1), coordinate));
}

Range drawable(const AxisSpec& spec, Range range) {
    const double least = is_log(spec.scale) ? kSmallest : -kLargest;
    if (std::isnan(range.lo) || std::isnan(range.hi)) range = {};
    if (range.lo > range.hi) std::swap(range.lo, range.hi);
    range = {std::clamp(range.lo, least, kLargest), std::clamp(range.hi, least, kLargest)};
    if (range.hi - range.lo >= min_width(range)) return range;
    const double centre = range.lo, half = std::max(0.5, 0.1 * std::fabs(centre));
    if (is_log(spec.scale)) return {centre / 2, centre * 2};
    return {centre - half, centre + half};
}

Axis::Axis(const AxisSpec& spec, Range range, double px_lo, double px_hi)
    : spec_(spec), range_(drawable(spec, range)), px_lo_(px_lo), px_hi_(px_hi) {
    if (is_log(spec_.scale))
        span_ = std::log1p((range_.hi - range_.lo) / range_.lo);
    else if (is_plain(spec_))
        span_ = range_.hi - range_.lo;
    else
        span_ = to_scale(spec_, range_.hi) - to_scale(spec_, range_.lo);
}

// The low end is subtracted first, and log1p takes the difference: a deep zoom keeps every digit that the
// data have.
double Axis::to_unit(double value) const {
    if (is_plain(spec_)) return (value - range_.lo) / span_;
    if (!is_log(spec_.scale)) return (to_scale(spec_, value) - to_scale(spec_, range_.lo)) / span_;
    return value > 0 ? std::log1p((value - range_.lo) / range_.lo) / span_ : kNan;
}

double Axis::from_unit(double unit) const {
    if (is_plain(spec_)) return range_.lo + unit * span_;
    if (!is_log(spec_.scale)) return from_scale(spec_, to_scale(spec_, range_.lo) + unit * span_);
    return range_.lo + range_.lo * std::expm1(unit * span_);
}

double Axis::to_px(double value) const { return px_lo_ + to_unit(value) * (px_hi_ - px_lo_); }
double Axis::from_px(double px) const { return from_unit((px - px_lo_) / (px_hi_ - px_lo_)); }

Range Axis::between(double unit_lo, double unit_hi) const {
    const Range next = {from_unit(unit_lo), from_unit(unit_hi)};
    const double least = is_log(spec_.scale) ? kSmallest : -kLargest;
    const bool possible = next.lo >= least && next.hi <= kLargest && next.hi - next.lo >= min_width(next);
    return possible ? next : range_;  // a NaN end is not possible either
}

Range Axis::panned(double px) const {
    const double moved = px / (px_hi_ - px_lo_);
    return between(-moved, 1 - moved);
}

Range Axis::zoomed(double px, double factor) const {
    const double at = (px - px_lo_) / (px_hi_ - px_lo_);
    return between(at - at * factor, at + (1 - at) * factor);
}

}  // namespace fp8lab
