// Internal to rng.cpp: the Box-Muller transform in float64, by vectors. A pair of normals is made of the four words
// of one Philox block w: u = 1 - uniform(w0, w1) in (0, 1], v = uniform(w2, w3), sqrt(-2 ln u) times (cos 2 pi v,
// sin 2 pi v), rounded to float32. Logarithm, sine and cosine are Highway's (at most 4 ulp of float64): where a
// processor has no fused multiply-add, one float32 in about 10^8 is the neighbour of what others get.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace fp8lab {

// Writes sigma times the pairs of the blocks `first`, first + 1, ... of the stream: out.size() / 2 pairs.
void normal_pairs(std::uint64_t seed, std::uint64_t stream, std::uint64_t first, std::span<float> out,
                  float sigma);

std::array<float, 2> normal_pair(double u, double v);

}  // namespace fp8lab
