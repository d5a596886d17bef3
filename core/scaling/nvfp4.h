// The block scales of NVFP4 for a whole matrix, as quantize() needs them. Formulas: numerics.md 1.5, from
// Transformer Engine's core_nvfp4.cuh; the targets 4 and 4or6: arXiv 2512.02010.
#pragma once

#include <span>
#include <vector>

#include "core/scaling/block_scales.h"

namespace fp8lab {

// `amaxes`: of the blocks. With target 4or6 every block is cast with both scales, under the rounding and the
// random numbers of the request, and keeps 4 where its squared error is smaller: the sum over its elements, row
// by row, of (x - q)^2 in float64. A block with a NaN or Inf keeps 6. `targets`: empty, or filled with 6 or 4.
void nvfp4_block_scales(const CastPlan& plan, const std::vector<float>& amaxes, std::span<const float> matrix,
                        std::size_t cols, const BlockGrid& grid, const QuantizeRequest& request,
                        BlockScales& scales, std::vector<std::uint8_t>* targets = nullptr);

// Step 2 for target 6: the scale of each block under that tensor scale (BlockScales::tensor_scale), a value of E4M3.
std::vector<float> nvfp4_rounded_scales(std::vector<float> amaxes, float tensor_scale);

}  // namespace fp8lab
