// One number rounded, over all magnitudes: the saw-tooth of a format's relative error, and what the seed
// notebook passes off as one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/figure/figure.h"
#include "core/formats/format.h"

namespace fp8lab::error {

// A way to round: a format's cast (nearest even, saturating), or the notebook's stand-in for it, clip to the
// largest value, then round(x * 2^M) / 2^M (seed 002, lines 144-154, 586-592): a fixed-point grid.
struct Rounder {
    std::string id, label;  // "e4m3", "E4M3"; "notebook", "notebook’s “E4M3”"
    Role role = Role::truth;
    FormatInfo format;
    bool notebook = false;

    double largest() const;              // finite value
    double smallest() const;             // above 0
    OverflowThreshold overflow() const;  // what is beyond it is changed by more than rounding
    // The range in which the relative spacing is even. The notebook's grid has none: empty (lo == hi).
    Range normal() const;
};
Rounder rounder_of(std::string_view format);  // throws usage_error for an unknown format
Rounder notebook_of(const FormatInfo& format);
// The IEEE formula for the largest value, which takes the top exponent away from numbers: 240 for E4M3, not
// 448.
double notebook_max(const FormatInfo& format);

// out[i] = in[i] multiplied by scale, rounded, and divided by it.
void round_all(const Rounder& rounder, std::span<const float> in, std::span<float> out, float scale);

// |x - round(x)| / x over `axis`, in percent, at every representable value (where it is 0), half way to the
// next (where it is largest) and between.
struct Curve {
    Rounder rounder;
    float scale = 1;
    Data x, percent;       // not below kFloor, so that a log axis keeps the pen down
    Data crests;           // the same, NaN where less than a quarter of the tooth's height is left
    Range normal;          // in x, that is divided by the scale
    double dies = 0;       // up to here everything becomes 0
    double largest = 0;    // beyond it everything saturates
    double worst_pct = 0;  // over the normal range
    double mean_pct = 0;   // over it, every magnitude alike: x log-uniform
};
inline constexpr double kFloor = 1e-4;  // percent
Curve sweep(const Rounder& rounder, float scale, Range axis);

// The largest relative error in percent within a factor sqrt(2) of x.
double worst_near(const Rounder& rounder, float scale, double x);

}  // namespace fp8lab::error
