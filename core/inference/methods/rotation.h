// Rotations that make the values of a matrix alike in size: x R and w R have the product x w^T, R being orthogonal
// (QuaRot, Ashkboos et al., arXiv 2404.00456).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/nn/matrix.h"

namespace fp8lab {

// Sylvester's Hadamard matrix of the largest power of two that divides n, divided by its root, block by block along the
// diagonal of an (n, n) matrix.
Matrix<float> hadamard_blocks(std::size_t n);
// The same with random signs in front of its rows.
Matrix<float> random_hadamard(std::size_t n, std::uint64_t seed);

}  // namespace fp8lab
