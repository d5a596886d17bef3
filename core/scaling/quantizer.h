// Quantises a matrix as a recipe says and measures the error. The only implementation of every granularity on
// the CPU: the trainer, the labs and `quantize` call it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/scaling/recipe.h"
#include "core/stats/error_metrics.h"

namespace fp8lab {

enum class TensorClass { x, w, dy };

// How one tensor is cast: the part of a Recipe that concerns its class.
struct CastPlan {
    const FormatInfo* format = nullptr;
    Granularity granularity = Granularity::tensor;
    bool square_blocks = false;  // of weights: 128x128 instead of 1x128, 16x16 instead of 1x16
    bool scaled = false;         // false: scale 1 (recipe `unscaled`, bf16, fp32)
    bool pow2 = false;
    ZeroAmax zero_amax = ZeroAmax::keep;  // of one scale per tensor
    double amax_percentile = 0;           // Recipe::amax_percentile; scales per tensor only
    int margin = 0;                       // FP32 scales: headroom above the amax in powers of two
    MxRule mx_rule = MxRule::up;
    Nvfp4Target target = Nvfp4Target::six;  // of block16
    Rounding rounding = Rounding::nearest;
    Overflow overflow = Overflow::saturate;
    bool operator==(const CastPlan&) const = default;
};
// The rotation (Recipe::rht) is not in the plan: the caller rotates before the cast.
// For the first product that reads the tensor: fprop of x and w, dgrad of dy.
CastPlan cast_plan(const Recipe& recipe, TensorClass tensor);
CastPlan cast_plan(const Recipe& recipe, TensorClass tensor, Gemm gemm);
// The plan in one layer (1-based) of a network of `layers`: BF16 where the layer is wide.
CastPlan cast_plan(const Recipe& recipe, TensorClass tensor, int layer, int layers);

// Which dimension of a row-major (rows, cols) matrix is K of the GEMM: rows and blocks run along it.
enum class Along { cols, rows };
// The product that reads a tensor along it: x (batch, in) and w (out, in) fprop along columns, dy (batch, out) dgrad.
Gemm gemm_of(TensorClass tensor, Along along);

// What a scale per tensor is computed from: the amax, or the plan's percentile of |x| by the nearest rank, the
// ceil(p/100 n)-th smallest; |NaN| counts as above all.
float scale_amax(const CastPlan& plan, std::span<const float> values);

struct QuantizeRequest {
    std::size_t rows = 0, cols = 0;
    Along along = Along::cols;
    float tensor_scale = 0;  // per tensor: the scale to use (delayed); 0 = from this tensor's amax
    float tensor_amax =
        -1;  // for the tensor's scale: of the tensor that `in` is a part of, or calibrated; below 0: of `in`
    std::uint64_t seed = 0, stream = 0;  // stochastic rounding: element (r, c) uses index r * cols + c
    bool with_stats = true;              // false: only n and amax
    bool with_errors = false;            // QuantizeResult::errors
};

struct QuantizeResult {
    CastStats stats;
    ErrorSums errors;           // with_errors
    float scale = 1;            // per-tensor scale used; for blocks the NVFP4 tensor scale, else 1
    std::vector<float> scales;  // one per block or row, in block order; empty: one per tensor
};

// out = dequantised values in the layout of `in`, may be the same memory. Format FP32 copies. Current scaling
// per tensor: scale = max * 2^-margin / amax, 1 where amax is 0 or not finite (numerics.md 3.3).
QuantizeResult quantize(const CastPlan& plan, std::span<const float> in, std::span<float> out,
                        const QuantizeRequest& request);

// Building blocks, tested against the worked values of numerics.md 1.4 and numerics.md 1.5.
std::uint32_t mx_scale_code(float block_amax, const FormatInfo& element, MxRule rule);  // the E8M0 byte
struct Nvfp4Scales {
    float encode_scale;
    std::uint32_t block_code;
    float block_factor;  // multiplies before the cast; 0 for a block whose code is 0: it gives zeros
};
// `block_target`, 6 or 4: what this block's amax becomes. The tensor scale leaves room for 4: under it the largest
// block scale is 256 instead of 448, since 1.5 x 448 has no E4M3 code.
Nvfp4Scales nvfp4_scales(float tensor_amax, float block_amax, Nvfp4Target target = Nvfp4Target::six,
                         int block_target = 6);

// The scales of one NVFP4 cast, block by block, as quantize() uses them; blocks in the order of block_grid()
// (block_scales.h).
struct Nvfp4Blocks {
    float tensor_amax = 0;               // NaN ignored
    float tensor_scale = 1;              // S
    std::vector<float> amaxes;           // of the elements
    std::vector<std::uint8_t> codes;     // E4M3, of the block's scale
    std::vector<float> units;            // what E2M1's 1 stands for; 0: the block is 0
    std::vector<std::uint8_t> targets;   // 6 or 4
    std::vector<std::uint32_t> clipped;  // elements above 6 units
};
// Throws usage_error: the plan's granularity is not block16, or `in` does not have rows x cols elements.
Nvfp4Blocks nvfp4_blocks(const CastPlan& plan, std::span<const float> in, const QuantizeRequest& request);

// Bits per element with its share of the scales, of one copy; of a recipe: of its x tensor (8.25 for mxfp8).
double bits_per_element(const CastPlan& plan, std::size_t rows, std::size_t cols);
double bits_per_element(const Recipe& recipe, std::size_t rows, std::size_t cols);

}  // namespace fp8lab
