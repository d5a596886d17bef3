// What a cast does to a tensor, in the terms the field uses (numerics section 5).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/formats/format.h"

namespace fp8lab {

struct CastStats {
    std::int64_t n = 0;
    float amax = 0;             // of the unscaled tensor
    std::int64_t underflow = 0; // non-zero elements that became 0
    std::int64_t overflow = 0;  // elements changed by saturation: |x * scale| beyond overflow_threshold, not "> max"
    std::int64_t nonfinite = 0;
    double signal = 0, noise = 0;  // sum x^2, sum (x - q)^2 over finite x
    double underflow_pct() const { return n ? 100.0 * static_cast<double>(underflow) / static_cast<double>(n) : 0; }
    double overflow_pct() const { return n ? 100.0 * static_cast<double>(overflow) / static_cast<double>(n) : 0; }
    double sqnr_db() const;     // 20 log10(|x| / |x - q|); +Inf when nothing was lost, NaN for an all-zero tensor
};

// Counts per binade of |x|: bin b holds 2^(kLowest + b) <= |x| < 2^(kLowest + b + 1). Zeros are counted apart.
// The exponent comes from the bit field, never from log2f (numerics section 7, row 10).
struct Log2Histogram {
    static constexpr int kLowest = -64, kBins = 128;
    std::array<std::int64_t, kBins> counts{};
    std::int64_t zeros = 0, below = 0, above = 0, nonfinite = 0, n = 0;
    void add(std::span<const float> values);
};

}  // namespace fp8lab
