// From samples to the points worth drawing. Above two samples a pixel each column keeps its first, least,
// greatest and last sample (a single spike in a million survives, which a stride would lose); below, every
// sample is drawn as it is.
#pragma once

#include <functional>
#include <span>

#include "core/figure/axis.h"
#include "core/figure/canvas.h"

namespace fp8lab {

// Calls `run` for every unbroken piece of the line, clipped to `clip`. NaN, and values <= 0 on log axes, lift
// the pen (gaps within one column count once); Inf leaves through the edge. A sample between two gaps is a
// run of one point. `step`: the value holds until the next x.
void trace_line(std::span<const double> xs, std::span<const double> ys, const Axis& x, const Axis& y,
                bool step, Rect clip, const std::function<void(std::span<const Point>)>& run);

// What trace_line() leaves out, for the legend's tooltip.
struct Omitted {
    std::size_t nan = 0, inf = 0, not_positive = 0;
};
Omitted count_omitted(const Series& series, const AxisSpec& x, const AxisSpec& y);

}  // namespace fp8lab
