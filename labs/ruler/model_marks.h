// A format as a ruler: its positive values are the marks, and the scale stretches it against the data. A
// tensor element x is cast as x * scale, so in units of the data the marks are at value / scale.
#pragma once

#include <cstdint>
#include <vector>

#include "core/formats/format.h"

namespace fp8lab::ruler {

// The positive finite values divided by scale, ascending. Formats up to 16 bits.
std::vector<double> positive_marks(const FormatInfo& format, double scale);

// The mark with half of the marks below it: 63 of E4M3's 126 are below 2.
struct Half {
    std::int64_t below = 0, total = 0;
    double at = 0;
};
Half half_of(const std::vector<double>& marks);

// Marks v with lo <= v < hi, and the gaps from each of them to the next mark. Without such a gap both are 0.
struct Interval {
    std::int64_t count = 0;
    double min_gap = 0, max_gap = 0;
};
Interval interval(const std::vector<double>& marks, double lo, double hi);

// The fixed-point stand-in for FP8 that teaching notebooks use, round(x * 2^M) / 2^M, has its marks at
// multiples of 2^-M. How many of the format's own positive values (at scale 1) it cannot represent: 48 of
// E4M3's 126.
std::int64_t missed_by_fixed_point(const FormatInfo& format);

}  // namespace fp8lab::ruler
