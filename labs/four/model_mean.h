// The mean of n stochastic casts: what averages out, and what does not.
#pragma once

#include <array>
#include <cstdint>
#include <span>
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
// The means of the casts of a tensor with streams 1 to n, at each n of `at` (ascending).
struct MeanRequest {
    Way way;
    const Tensor* tensor = nullptr;
    std::vector<int> at;
};
// A line for each request; `way.stochastic` is taken as true. The same numbers as casting n times with
// quantize() and streams 1 to n. Where the scales do not depend on the random numbers (all but 4or6) a cast is
// a choice between two codes, so that a random number is drawn once for all requests and compared.
std::vector<MeanLine> mean_lines(std::span<const MeanRequest> requests, std::uint64_t seed);

}  // namespace fp8lab::four
