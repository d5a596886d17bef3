// The scales of a matrix that has more than one: which elements share a scale, and its value.
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
    std::vector<float> multipliers, inverses;  // one a block: before the cast, after the cast
    float tensor_scale = 1;                    // NVFP4's, else 1
};
BlockScales block_scales(const CastPlan& plan, std::span<const float> matrix, std::size_t cols,
                         const BlockGrid& grid);

}  // namespace fp8lab
