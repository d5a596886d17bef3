// The effect of a cast on a tensor; definitions: numerics.md 5.1.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/formats/format.h"
#include "core/stats/lost_mass.h"

namespace fp8lab {

struct CastStats {
    std::int64_t n = 0;
    float amax = 0;              // of the unscaled tensor, NaN ignored
    std::int64_t underflow = 0;  // non-zero elements that became 0
    // Elements that saturation changes: |x * scale| beyond overflow_threshold(), not "> max"; Inf counts too
    // (numerics.md 3.3).
    std::int64_t overflow = 0;
    std::int64_t nonfinite = 0;    // NaN or +-Inf before the cast
    double signal = 0, noise = 0;  // sum x^2, sum (x - q)^2 over finite x
    LostMass mass;
    double underflow_pct() const {
        return n ? 100.0 * static_cast<double>(underflow) / static_cast<double>(n) : 0;
    }
    double overflow_pct() const {
        return n ? 100.0 * static_cast<double>(overflow) / static_cast<double>(n) : 0;
    }
    // The share of the absolute sum, and of the squares, that underflow removed. It is 0 for a tensor of zeros.
    double lost_l1_pct() const { return underflow ? 100 * mass.lost_l1 / mass.l1 : 0; }
    double lost_energy_pct() const { return underflow ? 100 * mass.lost_energy / signal : 0; }
    CastStats& operator+=(const CastStats& other);
    // 20 log10(|x| / |x - q|); +Inf when nothing was lost, NaN for an all-zero tensor.
    double sqnr_db() const;
};

// The statistics of a cast of x to q, the dequantised result. `scales`: one scale for all of x or one per
// element. Counts are exact. Differences are taken in float32; squares and sizes are summed in float64, in
// an order that depends only on x.size(). Vectorised, in the calling thread.
CastStats measure_cast(std::span<const float> x, std::span<const float> q, std::span<const float> scales,
                       OverflowThreshold threshold);

// Counts per binade of |x|: bin b holds 2^(kLowest + b) <= |x| < 2^(kLowest + b + 1). Zeros are counted
// apart. The exponent comes from the bit field, never from log2f (numerics.md 6, row 10).
struct Log2Histogram {
    static constexpr int kLowest = -64, kBins = 128;
    std::array<std::int64_t, kBins> counts{};
    std::int64_t zeros = 0, below = 0, above = 0, nonfinite = 0, n = 0;
    void add(std::span<const float> values);
};

}  // namespace fp8lab
