#include "core/inference/methods/rotation.h"

#include <bit>
#include <cmath>

#include "core/base/rng.h"

namespace fp8lab {

Matrix<float> hadamard_blocks(std::size_t n) {
    Matrix<float> out(n, n);
    const std::size_t length = n & (~n + 1);  // its lowest bit
    const float size = static_cast<float>(1 / std::sqrt(static_cast<double>(length)));
    for (std::size_t r = 0; r < n; ++r)
        for (std::size_t k = 0; k < length; ++k) {
            const bool negative = std::popcount((r % length) & k) % 2 == 1;
            out.row(r)[r / length * length + k] = negative ? -size : size;
        }
    return out;
}

Matrix<float> random_hadamard(std::size_t n, std::uint64_t seed) {
    Matrix<float> out = hadamard_blocks(n);
    for (std::size_t r = 0; r < n; ++r)
        if ((random_bits(seed, 0, r) & 1) != 0)
            for (float& v : out.row(r)) v = -v;
    return out;
}

}  // namespace fp8lab
