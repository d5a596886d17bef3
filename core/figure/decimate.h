// Reduces samples to the points that are drawn. Above two samples per pixel each column keeps its first,
// smallest, largest and last sample, so that a single spike among a million samples is drawn. Below, every
// sample is drawn.
#pragma once

#include <functional>
#include <span>

#include "core/figure/axis.h"
#include "core/figure/canvas.h"

namespace fp8lab {

// Calls `run` for every uninterrupted piece of the line, clipped to `clip`. NaN, and values <= 0 on log axes,
// interrupt it (gaps within one column count once); Inf is clipped at the edge. A sample between two gaps is
// a piece of one point. `step`: the value holds until the next x.
void trace_line(std::span<const double> xs, std::span<const double> ys, const Axis& x, const Axis& y,
                bool step, Rect clip, const std::function<void(std::span<const Point>)>& run);

// What trace_line() leaves out, for the legend's tooltip.
struct Omitted {
    std::size_t nan = 0, inf = 0, not_positive = 0;
};
Omitted count_omitted(const Series& series, const AxisSpec& x, const AxisSpec& y);

}  // namespace fp8lab
