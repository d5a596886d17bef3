// What a scan measures: the values of a tensor, and each of its casts.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/tensors/excluded.h"
#include "core/tensors/scales/scale_grid.h"

namespace fp8lab {

// Counts per binade of |x|, of all float32 exponents: bin b holds 2^(kLowest + b) <= |x| < 2^(kLowest + b + 1).
struct Binades {
    static constexpr int kLowest = -149, kBins = 277;
    std::array<std::int64_t, kBins> counts{};
    void add(float value);  // finite, not 0
};

// Excluded values count as 0 and enter no other number. `excluded.below` is among the zeros, the others are
// not.
struct TensorSummary {
    std::int64_t n = 0, zeros = 0;
    Excluded excluded = {};
    float amax = 0, least = 0;  // least |x| above 0; 0 where all are 0
    Binades histogram;
    ScaleHealth scales = {};  // of codes: what is unusual among their scales
    double binades() const;   // log2(amax) - log2(least); 0 where all are 0
    double zeros_pct() const {
        return n > 0 ? 100.0 * static_cast<double>(zeros) / static_cast<double>(n) : 0;
    }
    // Sets the values that are not finite to 0. `narrowed`: as TensorStore::read_rows() returned them.
    void add(std::span<float> values, const Narrowed& narrowed = {});
    TensorSummary& operator+=(const TensorSummary& other);
};

// dB and percent as in CastStats. Inf: the cast is exact. NaN: the tensor has only zeros.
struct CastOutcome {
    double sqnr_db = 0, underflow_pct = 0, overflow_pct = 0;
    double worst_row_db = 0;  // the lowest SQNR of a row that is not all 0
    double bits = 0;          // per element, scales included
};

}  // namespace fp8lab
