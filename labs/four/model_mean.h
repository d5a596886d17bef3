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

// The error of the mean of the casts with streams 1 to n of a seed.
struct MeanLine {
    std::vector<int> n;                  // ascending
    std::vector<Numbers> numbers;        // one for each n
    const Numbers& at(int casts) const;  // an n that the line has
};
// A line that is wanted. The tensor is not owned. `at`: the n of the line, from 1, each larger than the one before; not
// empty.
struct MeanRequest {
    Way way;
    const Tensor* tensor = nullptr;
    std::vector<int> at;
};
// A line for each request, of stochastic casts whatever `way` says. The codes are those of quantize() with streams 1 to n;
// but for 4or6 their sum is exact, where quantize() rounds each result to float32. Where the scales do not depend on the
// random numbers (all but 4or6) a cast is a choice between two codes, by a random number that is drawn once for all
// requests.
std::vector<MeanLine> mean_lines(std::span<const MeanRequest> requests, std::uint64_t seed);

}  // namespace fp8lab::four
