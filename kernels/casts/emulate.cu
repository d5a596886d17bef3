#include <cfloat>
#include <cmath>

#include "core/base/rng.h"
#include "core/scaling/block_scales.h"
#include "core/scaling/scale_rule.h"
#include "kernels/casts/codec.cuh"
#include "kernels/casts/emulate.h"
#include "kernels/casts/tile.cuh"

namespace fp8lab::cuda {
namespace {

constexpr float kNvfp4ElementMax = 6;  // E2M1's

enum class ScaleRule : int { tensor, fp32, mx, nvfp4 };

// A cast as the kernels take it: plain numbers, by value.
struct CastRow {
    CodecRow element, e8m0, e4m3;
    float nan_value = 0, max_finite = 0, overflow_limit = 0;
    ScaleRule rule = ScaleRule::tensor;
    MxRule mx_rule = MxRule::up;
    Nvfp4Target target = Nvfp4Target::six;
    int max_exponent = 0, mantissa_bits = 0;  // of the element, for the MX rules
    int margin = 0;
    const ScaleControls* controls = nullptr;  // null: the margin is `margin`
    bool pow2 = false, scaled = false, stochastic = false;
    int rows = 0, cols = 0, stride = 0;
    int height = 1, width = 1, across = 1;  // of the blocks that share a scale, and how many lie side by side
    std::uint64_t seed = 0;
    int layer = 0;
    unsigned detail = 0;
    int micro = 0;
    Draw draw = Draw::cast;
};

struct Factors {
    float scale, scale_inv;  // before and after the cast
};

__device__ float limited(float scale) { return fminf(scale, FLT_MAX); }

__device__ Factors fp32_factors(const CastRow& row, int margin, float amax) {
    const float scale = fp8lab::scale_from_amax(amax, row.max_finite, margin, 1.0F, row.pow2);
    return {scale, 1 / scale};
}

// core/scaling/block_scales.cpp, mx_scales().
__device__ Factors mx_factors(const CastRow& row, float amax) {
    float scale_inv = amax;  // a NaN stays
    if (row.mx_rule == MxRule::up) {
        scale_inv = quantized(row.e8m0, __uint_as_float(0x7FC00000), amax / row.max_finite, 0);
    } else if (isinf(amax)) {
        scale_inv = ldexpf(1.0F, 127);
    } else if (amax == 0) {
        scale_inv = ldexpf(1.0F, -127);
    } else if (!isnan(amax)) {
        int exponent = ilogbf(amax);
        if (row.mx_rule == MxRule::even &&
            scalbnf(amax, -exponent) >= 2 - ldexpf(1.0F, -row.mantissa_bits - 1))
            ++exponent;
        scale_inv = ldexpf(1.0F, min(max(exponent - row.max_exponent, -127), 127));
    }
    return {1 / scale_inv, scale_inv};
}

// core/scaling/nvfp4.cpp.
__device__ float nvfp4_scale_max(Nvfp4Target target) { return target == Nvfp4Target::six ? 448.0F : 256.0F; }

__device__ float nvfp4_tensor_scale(float tensor_amax, Nvfp4Target target) {
    const float scale = limited(nvfp4_scale_max(target) * kNvfp4ElementMax / tensor_amax);
    return tensor_amax == 0 || scale == 0 ? 1 : scale;
}

// `becomes`: 6 or 4.
__device__ Factors nvfp4_factors(const CastRow& row, float amax, float tensor_amax, std::uint32_t becomes) {
    const float scale = nvfp4_tensor_scale(tensor_amax, row.target);
    const float block = quantized(row.e4m3, __uint_as_float(0x7FC00000),
                                  amax * (scale * (1 / static_cast<float>(becomes))), 0);
    const float factor = block == 0 ? 0 : limited(1 / (block * (1 / scale)));
    return {factor, block * (tensor_amax / (nvfp4_scale_max(row.target) * kNvfp4ElementMax))};
}

// One warp a block of elements that share a scale: its amax, NaN ignored or, in MX, kept.
__global__ void block_amax_kernel(CastRow row, const float* in, int blocks, float* amaxes,
                                  std::uint32_t* tensor_amax) {
    wait_for_the_kernel_before();
    const int block = static_cast<int>(blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32),
              lane = threadIdx.x % 32;
    if (block >= blocks) return;
    const int r0 = block / row.across * row.height, c0 = block % row.across * row.width;
    const int height = min(row.height, row.rows - r0), width = min(row.width, row.cols - c0);
    std::uint32_t largest = 0;
    bool nan = false;
    for (int i = lane; i < height * width; i += 32) {
        const float x = in[static_cast<std::size_t>(r0 + i / width) * row.stride + c0 + i % width];
        if (isnan(x))
            nan = true;
        else
            largest = max(largest, __float_as_uint(x) & 0x7FFFFFFFu);
    }
    largest = __reduce_max_sync(0xFFFFFFFFu, largest);
    nan = __any_sync(0xFFFFFFFFu, nan);
    if (lane != 0) return;
    if (nan && row.rule == ScaleRule::mx) largest = 0x7FC00000u;
    amaxes[block] = __uint_as_float(largest);
    if (row.rule == ScaleRule::nvfp4) atomicMax(tensor_amax, largest);
}

// One thread a block of NVFP4, so that its errors are added in core's order: 4 where its error is smaller, else 6.
__global__ void choose_target_kernel(CastRow row, const float* in, int blocks, const float* amaxes,
                                     const std::uint32_t* tensor_amax, std::uint32_t* targets,
                                     const ArmState* arm) {
    wait_for_the_kernel_before();
    const int block = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (block >= blocks) return;
    const int r0 = block / row.across * row.height, c0 = block % row.across * row.width;
    const int height = min(row.height, row.rows - r0), width = min(row.width, row.cols - c0);
    const std::uint64_t dice =
        row.stochastic ? stream(row.draw, row.layer, arm->step, row.detail, row.micro) : 0;
    const float tensor = __uint_as_float(*tensor_amax);
    const Factors six = nvfp4_factors(row, amaxes[block], tensor, 6),
                  four = nvfp4_factors(row, amaxes[block], tensor, 4);
    double error_six = 0, error_four = 0;
    for (int i = 0; i < height * width; ++i) {
        const int r = r0 + i / width, c = c0 + i % width;
        const float x = in[static_cast<std::size_t>(r) * row.stride + c];
        const std::uint32_t random =
            row.stochastic ? random_bits(row.seed, dice, static_cast<std::uint64_t>(r) * row.cols + c) : 0;
        const auto add = [&](double& sum, const Factors& f) {
            const float q = quantized(row.element, row.nan_value, x * f.scale, random) * f.scale_inv;
            const double error = static_cast<double>(x) - static_cast<double>(q);
            sum += error * error;
        };
        add(error_six, six);
        add(error_four, four);
    }
    targets[block] = error_four < error_six ? 4 : 6;
}

// `targets`: of the blocks, or null where all have row.target.
template <bool kStats>
__global__ void __launch_bounds__(kThreads)
    emulate_kernel(CastRow row, const float* in, float* out, ScaleState* state, const float* amaxes,
                   const std::uint32_t* tensor_amax, const std::uint32_t* targets, CastSums* partials,
                   bool with_amax, const ArmState* arm) {
    wait_for_the_kernel_before();
    const std::uint32_t becomes = row.target == Nvfp4Target::four ? 4 : 6;
    const float tensor = row.rule == ScaleRule::nvfp4 ? __uint_as_float(*tensor_amax) : 0;
    const Factors whole{row.scaled ? state->scale : 1.0F, 1 / (row.scaled ? state->scale : 1.0F)};
    const int margin = row.controls ? row.controls->margin : row.margin;
    const std::uint64_t dice =
        row.stochastic ? stream(row.draw, row.layer, arm->step, row.detail, row.micro) : 0;
    float amax = 0;
    std::uint32_t underflow = 0, overflow = 0;
    CastSums sums;
    for (int i = threadIdx.x; i < kTileRows * kTileCols; i += kThreads) {
        const int r = static_cast<int>(blockIdx.y) * kTileRows + i / kTileCols,
                  c = static_cast<int>(blockIdx.x) * kTileCols + i % kTileCols;
        if (r >= row.rows || c >= row.cols) continue;
        const std::size_t at = static_cast<std::size_t>(r) * row.stride + c;
        const float x = in[at];
        Factors f = whole;
        if (row.rule != ScaleRule::tensor) {
            const int block = r / row.height * row.across + c / row.width;
            const float block_amax = amaxes[block];
            f = row.rule == ScaleRule::fp32 ? fp32_factors(row, margin, block_amax)
                : row.rule == ScaleRule::mx
                    ? mx_factors(row, block_amax)
                    : nvfp4_factors(row, block_amax, tensor, targets ? targets[block] : becomes);
        }
        const std::uint32_t random =
            row.stochastic ? random_bits(row.seed, dice, static_cast<std::uint64_t>(r) * row.cols + c) : 0;
        const float q = quantized(row.element, row.nan_value, x * f.scale, random) * f.scale_inv;
        out[at] = q;
        amax = larger(amax, x);
        if constexpr (kStats) {
            const bool became_zero = x != 0 && q == 0;
            underflow += became_zero;
            overflow += fabsf(x) * f.scale > row.overflow_limit;
            if (isfinite(x)) {
                const double wide = static_cast<double>(x), error = static_cast<double>(x - q);
                sums.signal += wide * wide;
                sums.noise += error * error;
                sums.mass.add(wide, became_zero);
                sums.fourth += wide * wide * (wide * wide);
            }
        }
    }
    if (with_amax) {
        max_amax(state, 0, amax);
        if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) {
            state->scale_used = row.rule == ScaleRule::tensor  ? whole.scale
                                : row.rule == ScaleRule::nvfp4 ? nvfp4_tensor_scale(tensor, row.target)
                                                               : 1.0F;
            state->scale_inv = 1 / state->scale_used;
        }
    }
    if constexpr (kStats) {
        store_cast_sums<kThreads>(sums, partials + blockIdx.y * gridDim.x + blockIdx.x);
        underflow = __reduce_add_sync(0xFFFFFFFFu, underflow);
        overflow = __reduce_add_sync(0xFFFFFFFFu, overflow);
        if (threadIdx.x % 32 == 0) {
            if (underflow) atomicAdd(&state->underflow, static_cast<unsigned long long>(underflow));
            if (overflow) atomicAdd(&state->overflow, static_cast<unsigned long long>(overflow));
        }
    }
}

__global__ void bf16_kernel(const float* in, float* out, long long count) {
    wait_for_the_kernel_before();
    const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)
        out[i] = __bfloat162float(__float2bfloat16_rn(in[i]));
}

CastRow row_of(const EmulatedCast& cast) {
    const CastPlan& plan = cast.plan;
    CastRow row;
    row.element = make_row(*plan.format, plan.rounding, plan.overflow);
    row.e8m0 = make_row(find_format("e8m0"), Rounding::up, Overflow::saturate);
    row.e4m3 = make_row(find_format("e4m3"), Rounding::nearest, Overflow::saturate);
    row.nan_value = decode(*plan.format, encode(*plan.format, std::nanf(""), plan.rounding, plan.overflow));
    row.max_finite = static_cast<float>(max_finite(*plan.format));
    row.overflow_limit = overflow_threshold(*plan.format).largest_below();
    row.rule = plan.granularity == Granularity::tensor    ? ScaleRule::tensor
               : plan.granularity == Granularity::block32 ? ScaleRule::mx
               : plan.granularity == Granularity::block16 ? ScaleRule::nvfp4
                                                          : ScaleRule::fp32;
    row.mx_rule = plan.mx_rule;
    row.target = plan.target;
    row.max_exponent = std::ilogb(max_finite(*plan.format));
    row.mantissa_bits = plan.format->kind == Kind::integer ? row.max_exponent : plan.format->mantissa_bits;
    row.margin = plan.margin;
    row.controls = cast.controls;
    row.pow2 = plan.pow2;
    row.scaled = plan.scaled;
    row.stochastic = plan.rounding == Rounding::stochastic;
    row.rows = cast.rows;
    row.cols = cast.cols;
    row.stride = cast.stride;
    const BlockGrid grid = block_grid(plan, static_cast<std::size_t>(cast.rows),
                                      static_cast<std::size_t>(cast.cols), cast.along);
    row.height = static_cast<int>(grid.height);
    row.width = static_cast<int>(grid.width);
    row.across = static_cast<int>(grid.across);
    row.seed = cast.seed;
    row.layer = cast.layer;
    row.detail = cast.detail;
    row.micro = cast.micro;
    row.draw = cast.draw;
    return row;
}

}  // namespace

void emulate_cast(const EmulatedCast& cast, const float* in, float* out, ScaleState* state, void* scratch,
                  CastSums* stats_partials, bool take_stats, const ArmState* arm, cudaStream_t stream) {
    const CastRow row = row_of(cast);
    auto* const tensor_amax = static_cast<std::uint32_t*>(scratch);
    float* const amaxes = static_cast<float*>(scratch) + 1;
    std::uint32_t* targets = nullptr;
    if (row.rule != ScaleRule::tensor) {
        if (row.rule == ScaleRule::nvfp4)
            check(cudaMemsetAsync(tensor_amax, 0, sizeof *tensor_amax, stream), "cudaMemsetAsync");
        const int blocks = row.across * ((row.rows + row.height - 1) / row.height);
        constexpr int kWarps = kThreads / 32;
        launch("emulate_cast", block_amax_kernel, dim3(static_cast<unsigned>((blocks + kWarps - 1) / kWarps)),
               kThreads, stream, row, in, blocks, amaxes, tensor_amax);
        if (row.rule == ScaleRule::nvfp4 && row.target == Nvfp4Target::four_or_six) {
            targets = tensor_amax + 1 + blocks;
            launch("emulate_cast", choose_target_kernel,
                   dim3(static_cast<unsigned>((blocks + kThreads - 1) / kThreads)), kThreads, stream, row, in,
                   blocks, amaxes, tensor_amax, targets, arm);
        }
    }
    const Shape shape{row.rows, row.cols, (row.rows + 15) / 16 * 16, row.stride};
    const dim3 grid(static_cast<unsigned>(tiles_across(shape)), static_cast<unsigned>(tiles_down(shape)));
    if (stats_partials && take_stats)
        launch("emulate_cast", emulate_kernel<true>, grid, kThreads, stream, row, in, out, state, amaxes,
               tensor_amax, targets, stats_partials, take_stats, arm);
    else
        launch("emulate_cast", emulate_kernel<false>, grid, kThreads, stream, row, in, out, state, amaxes,
               tensor_amax, targets, nullptr, take_stats, arm);
}

void round_to_bf16(const float* in, float* out, long long count, cudaStream_t stream) {
    constexpr long long kMostBlocks = 132 * 8;
    const long long blocks = (count + kThreads - 1) / kThreads;
    launch("round_to_bf16", bf16_kernel,
           dim3(static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks)), kThreads, stream, in,
           out, count);
}

}  // namespace fp8lab::cuda
