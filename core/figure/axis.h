// One axis: conversion between data and pixels, in double until the last step, and panning and zooming.
#pragma once

#include <limits>

#include "core/figure/figure.h"

namespace fp8lab {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The coordinate in which the scale is linear: v, log2 v, log10 v, or matplotlib's symlog (linear within
// +-threshold, then one unit per decade). NaN on log scales for v <= 0.
double to_scale(const AxisSpec& spec, double value);
double from_scale(const AxisSpec& spec, double coordinate);

// A range that can be drawn: ordered, finite, positive on log scales, at least 64 ulp of its larger end wide.
Range drawable(const AxisSpec& spec, Range range);

class Axis {
  public:
    Axis() = default;
    Axis(const AxisSpec& spec, Range range, double px_lo, double px_hi);  // px_hi < px_lo for a y axis

    double to_px(double value) const;  // NaN for values that the scale does not have; Inf stays Inf
    double from_px(double px) const;
    // The range after the content was moved by `px`; or after zooming by `factor` (< 1: closer) around the
    // value under `px`. Beyond the limits of double, or closer than 64 ulp, the range is returned unchanged.
    Range panned(double px) const;
    Range zoomed(double px, double factor) const;

    const AxisSpec& spec() const { return spec_; }
    Range range() const { return range_; }
    double px_lo() const { return px_lo_; }
    double px_hi() const { return px_hi_; }

  private:
    double to_unit(double value) const;  // 0 at range.lo, 1 at range.hi
    double from_unit(double unit) const;
    Range between(double unit_lo, double unit_hi) const;

    AxisSpec spec_;
    Range range_;
    double px_lo_ = 0, px_hi_ = 1;
    double span_ = 1;  // hi - lo in the coordinate of to_unit()
};

}  // namespace fp8lab
