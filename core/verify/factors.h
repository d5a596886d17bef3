// The factor by which the codes of each scale would have to be multiplied to be nearest to the original (least squares),
// and what these factors say of the scales that the file has.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/verify/division.h"
#include "core/verify/readings.h"

namespace fp8lab {

// Of all scales of a matrix. a: the factor of a block; s: the stored scale, times the global one; 1 in a file without
// scales. amax: of the original's block.
struct FactorTally {
    double rest = 0, signal = 0;  // squared: what is left with the best factors; the original
    std::int64_t blocks = 0;      // with a value that is not 0
    std::int64_t used = 0;        // of these, whose a and s are not 0 and finite
    std::int64_t negated = 0;     // of these, with s / a below 0
    // r = log2 |s / a| of those.
    double sum_r = 0, sum_r2 = 0;
    std::int64_t above_by_less_than_2 = 0;  // r in (-0.12, 1.05)
    // |r| > 0.1, or 0.3 where few values or few bits leave a uncertain; a negated one, and all that are not used.
    std::int64_t off = 0;
    bool powers = true;            // all s, without the global one, are powers of two
    float least = 0, largest = 0;  // of s, without the global one
    // log2(a / s) = k x for x = log2(amax / max of the format), and for x rounded up: how many are within 0.6, 1.1.
    static constexpr std::array kSlopes = {1, -1, 2};
    struct Near {
        std::int64_t close = 0, near = 0;
        void add(double binades);
        Near& operator+=(const Near& other);
        bool holds_for(std::int64_t all) const;  // half of them and 95 %
    };
    std::array<std::array<Near, 2>, 3> slopes = {};
    Near inverse = {};  // log2(a) = log2(global / scale): E4M3 holds the inverse of a scale above 64 badly

    FactorTally& operator+=(const FactorTally& other);
    double relative() const;  // what is left
    double mean_r() const { return used > 0 ? sum_r / static_cast<double>(used) : 0; }
    double sigma_r() const;
};

FactorTally factors_of(const OriginalMatrix& original, const StoredMatrix& stored, const Division& division,
                       std::span<const Band> bands);

// What they say, where the rest is as small as that of our own cast: the id of a fault, and its words where they have
// numbers. Empty: nothing, all scales are right. `has_scales`: the file has them.
inline constexpr std::string_view kNoRule = "other-scales";  // no rule explains the factors
struct FactorFault {
    std::string_view fault;
    std::string words = {};
};
FactorFault fault_of(const FactorTally& tally, bool has_scales);

}  // namespace fp8lab
