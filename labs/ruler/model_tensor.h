// The tensor under the ruler: cast with the scale, and counted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/formats/format.h"
#include "core/stats/tensor_stats.h"

namespace fp8lab::ruler {

// What one cast does to every element.
enum class Fate : std::uint8_t { normal, subnormal, zero, underflow, saturated };
struct CastReport {
    CastStats stats;
    double normal_pct = 0;    // of all elements: the code is a normal number, and not by saturation
    std::vector<Fate> fates;  // one an element
};
CastReport cast_report(const FormatInfo& format, std::span<const float> values, double scale);

// Counts of |x| per bin: all of them, those that became 0 and those that saturated. `edges` ascend; what lies
// outside them is not counted.
struct Histogram {
    std::vector<double> edges, all, underflow, saturated;
};
Histogram histogram(std::span<const float> values, std::span<const Fate> fates, std::vector<double> edges);

}  // namespace fp8lab::ruler
