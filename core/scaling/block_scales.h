// The scales of a matrix with more than one scale: which elements share one, and its value (numerics.md 1.2).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/scaling/quantizer.h"

namespace fp8lab {

// Blocks of height x width elements that tile a (rows, cols) matrix; the last ones of a row or column may be
// partial. Block (b, c) of the tiling has index b * across + c.
struct BlockGrid {
    std::size_t height = 1, width = 1, down = 0, across = 0;
    std::size_t count() const { return down * across; }
};
BlockGrid block_grid(const CastPlan& plan, std::size_t rows, std::size_t cols, Along along);

struct BlockScales {
    std::vector<float> scale, scale_inv;  // one per block: before the cast, after it
    float tensor_scale = 1;               // the FP32 tensor scale of NVFP4, else 1
};
// `request`: of its random numbers, which 4or6 needs (nvfp4.h).
BlockScales block_scales(const CastPlan& plan, std::span<const float> matrix, std::size_t cols,
                         const BlockGrid& grid, const QuantizeRequest& request = {});

// The largest magnitude of each block. A NaN is ignored, or is the amax of its block.
std::vector<float> block_amaxes(std::span<const float> matrix, std::size_t cols, const BlockGrid& grid,
                                bool keep_nan);

}  // namespace fp8lab
