// The mean of n stochastic casts: what averages out, and what does not.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "labs/four/model_cast.h"

namespace fp8lab::four {

inline constexpr int kMostCasts = 256, kGainCasts = 64;
inline constexpr std::size_t kMeanPoints = 9;  // n = 1, 2, 4, ..., 256

// Of the mean of the casts with streams 1 to n of a seed.
struct MeanLine {
    std::vector<int> n;                  // ascending
    std::vector<Numbers> numbers;        // one for each n
    const Numbers& at(int casts) const;  // an n that the line has
};
// The means of the casts with streams 1 to n, at each n of `at` (ascending). Where the scales do not depend on
// the dice (all but 4or6) the scaled elements are made once and only the codes are drawn anew: the same codes
// as quantize() gives, and their sum is exact in float32.
MeanLine mean_line(Way way, const Tensor& x, std::uint64_t seed, const std::vector<int>& at);

}  // namespace fp8lab::four
