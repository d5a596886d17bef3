#include "core/scaling/nvfp4.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/threads/parallel.h"

namespace fp8lab {
namespace {

constexpr float kElementMax = 6;  // E2M1's

// The largest block scale under the tensor scale: E4M3's largest, or 256, of which 1.5 times has a code.
float scale_max(Nvfp4Target target) { return target == Nvfp4Target::six ? 448.0F : 256.0F; }

// numerics.md 1.5, step 1.
float encode_scale_of(float tensor_amax, Nvfp4Target target) {
    // Asked of the amax: g++ 13 takes the minimum below for 0 where the quotient overflows.
    if (tensor_amax == 0 || std::isinf(tensor_amax)) return 1;
    return std::min(scale_max(target) * kElementMax / tensor_amax, std::numeric_limits<float>::max());
}

// Step 2: the blocks' scales, rounded to E4M3. `becomes`: 6 or 4.
std::vector<float> rounded_scales(std::vector<float> amaxes, float encode_scale, int becomes) {
    for (float& value : amaxes) value *= encode_scale * (1 / static_cast<float>(becomes));
    quantize(find_format("e4m3"), amaxes, amaxes);
    return amaxes;
}

// Step 3, with the rounded scale, so that its rounding does not bias the data.
float block_factor(float block_scale, float encode_scale) {
    if (block_scale == 0) return 0;
    return std::min(1 / (block_scale * (1 / encode_scale)), std::numeric_limits<float>::max());
}

float largest_of(const std::vector<float>& amaxes) {
    return amaxes.empty() ? 0 : *std::max_element(amaxes.begin(), amaxes.end());
}

BlockScales scales_to(Nvfp4Target target, int becomes, const std::vector<float>& amaxes, float amax) {
    BlockScales scales;
    scales.tensor_scale = encode_scale_of(amax, target);
    const float tensor_scale_inv = amax / (scale_max(target) * kElementMax);
    scales.scale_inv = rounded_scales(amaxes, scales.tensor_scale, becomes);
    for (float& value : scales.scale_inv) {
        scales.scale.push_back(block_factor(value, scales.tensor_scale));
        value *= tensor_scale_inv;
    }
    return scales;
}

// The squared error of every block.
std::vector<double> block_errors(const CastPlan& plan, std::span<const float> matrix, std::size_t cols,
                                 const BlockGrid& grid, const BlockScales& scales,
                                 const QuantizeRequest& request) {
    std::vector<double> errors(grid.count());
    const std::size_t rows = cols == 0 ? 0 : matrix.size() / cols;
    parallel_for(grid.down, 1, [&](std::size_t begin, std::size_t end) {
        std::vector<float> q(cols);
        for (std::size_t r = begin * grid.height; r < std::min(rows, end * grid.height); ++r) {
            const std::size_t first = r / grid.height * grid.across;
            const std::span<const float> x = matrix.subspan(r * cols, cols);
            for (std::size_t c = 0; c < cols; ++c) q[c] = x[c] * scales.scale[first + c / grid.width];
            quantize(*plan.format, q, q,
                     {plan.rounding, plan.overflow, 1, request.seed, request.stream, r * cols});
            for (std::size_t c = 0; c < cols; ++c) {
                const std::size_t block = first + c / grid.width;
                const float back = q[c] * scales.scale_inv[block];
                const double error = static_cast<double>(x[c]) - static_cast<double>(back);
                errors[block] += error * error;
            }
        }
    });
    return errors;
}

}  // namespace

Nvfp4Scales nvfp4_scales(float tensor_amax, float block_amax, Nvfp4Target target, int block_target) {
    const float encode_scale = encode_scale_of(tensor_amax, target);
    const float block_scale = rounded_scales({block_amax}, encode_scale, block_target)[0];
    return {encode_scale, encode(find_format("e4m3"), block_scale), block_factor(block_scale, encode_scale)};
}

std::vector<float> nvfp4_rounded_scales(std::vector<float> amaxes, float tensor_scale) {
    return rounded_scales(std::move(amaxes), tensor_scale, 6);
}

void nvfp4_block_scales(const CastPlan& plan, const std::vector<float>& amaxes, std::span<const float> matrix,
                        std::size_t cols, const BlockGrid& grid, const QuantizeRequest& request,
                        BlockScales& scales, std::vector<std::uint8_t>* targets) {
    const Nvfp4Target target = plan.target;
    const float amax = request.tensor_amax < 0 ? largest_of(amaxes) : request.tensor_amax;
    scales = scales_to(target, target == Nvfp4Target::four ? 4 : 6, amaxes, amax);
    if (targets) targets->assign(amaxes.size(), target == Nvfp4Target::four ? 4 : 6);
    if (target != Nvfp4Target::four_or_six) return;
    const BlockScales to_four = scales_to(target, 4, amaxes, amax);
    const std::vector<double> six = block_errors(plan, matrix, cols, grid, scales, request),
                              four = block_errors(plan, matrix, cols, grid, to_four, request);
    for (std::size_t i = 0; i < amaxes.size(); ++i) {
        if (!(four[i] < six[i])) continue;
        scales.scale[i] = to_four.scale[i];
        scales.scale_inv[i] = to_four.scale_inv[i];
        if (targets) (*targets)[i] = 4;
    }
}

Nvfp4Blocks nvfp4_blocks(const CastPlan& plan, std::span<const float> in, const QuantizeRequest& request) {
    if (plan.granularity != Granularity::block16)
        throw usage_error("nvfp4_blocks", "the cast has no blocks with E4M3 scales");
    if (in.size() != request.rows * request.cols)
        throw usage_error("nvfp4_blocks", "the input must have rows x cols elements");
    const BlockGrid grid = block_grid(plan, request.rows, request.cols, request.along);
    Nvfp4Blocks blocks;
    blocks.amaxes = block_amaxes(in, request.cols, grid, false);
    blocks.tensor_amax = largest_of(blocks.amaxes);
    BlockScales scales;
    nvfp4_block_scales(plan, blocks.amaxes, in, request.cols, grid, request, scales, &blocks.targets);
    blocks.tensor_scale = scales.tensor_scale;
    blocks.units = scales.scale_inv;
    const std::vector<float> six = rounded_scales(blocks.amaxes, scales.tensor_scale, 6),
                             four = rounded_scales(blocks.amaxes, scales.tensor_scale, 4);
    for (std::size_t i = 0; i < blocks.amaxes.size(); ++i)
        blocks.codes.push_back(static_cast<std::uint8_t>(
            encode(find_format("e4m3"), blocks.targets[i] == 4 ? four[i] : six[i])));
    blocks.clipped.assign(blocks.amaxes.size(), 0);
    for (std::size_t i = 0; i < in.size(); ++i) {
        const std::size_t r = i / request.cols, c = i % request.cols;
        const std::size_t block = r / grid.height * grid.across + c / grid.width;
        blocks.clipped[block] += std::fabs(in[i]) * scales.scale[block] > kElementMax;
    }
    return blocks;
}

}  // namespace fp8lab
