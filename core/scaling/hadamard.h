// The random Hadamard transform (RHT) of NVIDIA's NVFP4 recipe: y = x diag(s) H16 / 4 over 16 consecutive
// elements of the contraction dimension. H16 is Sylvester's Hadamard matrix, s a vector of signs. The transform
// is orthogonal: the sum of squares of 16 elements does not change, and a product is the same if both operands
// are rotated, since H16 H16^T = 16. arXiv 2509.25149, section 4.2; Transformer Engine rotates x and dy of wgrad.
//
// Computed in FP32 as four stages of sums and differences, of elements 1, 2, 4 and 8 apart, in this order on the
// CPU and on the GPU: the bytes are the same. Integers up to 2^16 come back from rotate_back(rotate(x)) bit for
// bit: every sum between is a multiple of 1/4 below 2^20.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/scaling/quantizer.h"

namespace fp8lab {

constexpr std::size_t kRhtLength = 16;
using RhtSigns = std::array<float, kRhtLength>;  // each 1 or -1

RhtSigns te_signs();  // Transformer Engine's get_wgrad_sign_vector()
RhtSigns no_signs();  // all 1: the Hadamard transform alone
RhtSigns drawn_signs(std::uint64_t seed);

// Rotates each 16 consecutive elements along `along` of a row-major (rows, cols) matrix: of a row (cols), or of
// a column (rows). The extent along it is a multiple of 16. out may be in. Throws usage_error: another extent,
// or spans that do not have rows x cols elements.
void rotate(std::span<const float> in, std::span<float> out, std::size_t rows, std::size_t cols, Along along,
            const RhtSigns& signs);
// The inverse.
void rotate_back(std::span<const float> in, std::span<float> out, std::size_t rows, std::size_t cols,
                 Along along, const RhtSigns& signs);

// n rounded up to a multiple of 16.
constexpr std::size_t rht_padded(std::size_t n) { return (n + kRhtLength - 1) / kRhtLength * kRhtLength; }

}  // namespace fp8lab
