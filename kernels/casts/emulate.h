// Emulation of recipes that the tensor cores of the GPU do not support: quantise-dequantise in FP32 on the
// device, with the same bits as core/scaling's quantize(). The GEMM then runs on the FP32 values.
#pragma once

#include <cstdint>

#include "core/nn/memory_plan.h"  // emulation_scratch_bytes()
#include "core/nn/streams.h"
#include "core/scaling/hadamard.h"
#include "core/scaling/quantizer.h"
#include "kernels/device/device.h"
#include "kernels/device/launch.h"

namespace fp8lab::cuda {

struct EmulatedCast {
    CastPlan plan;
    int rows = 0, cols = 0;  // row-major FP32; row r starts at r * stride
    int stride = 0;          // >= cols; the padding is 0 and stays 0. Philox index: r * cols + c
    Along along = Along::cols;
    std::uint64_t seed = 0;
    int layer = 0;  // of the Philox stream Draw::cast (core/nn/streams.h), with the step from arm->step
    unsigned detail = 0;
    int micro = 0;
    const ScaleControls* controls = nullptr;  // their margin replaces the plan's; may be null
    Draw draw = Draw::cast;                   // Draw::update for weights stored without a master copy
};

// out = dequantised in, may be the same memory. Per-tensor plans use state->scale (delayed, fixed, or after
// scale_from_amax()) and write scale_used, amax_bits and, with stats_partials (stats_blocks(shape)), counts
// and sums; plans with blocks compute their scales from `in` (scratch) and gather the same. NVFP4's tensor
// scale goes to scale_used. take_stats false: amax and counts are left alone (the second cast of a tensor in
// one step).
void emulate_cast(const EmulatedCast& cast, const float* in, float* out, ScaleState* state, void* scratch,
                  CastSums* stats_partials, bool take_stats, const ArmState* arm, cudaStream_t stream);

// The random Hadamard transform, with the same bits as core/scaling/hadamard.h: of 16 consecutive elements along
// `along`, of which there is a multiple of 16; rows start at multiples of `stride` in both. out may be in. The
// padding beyond `cols` is left alone.
void rotate(const float* in, float* out, int rows, int cols, int stride, Along along, const RhtSigns& signs,
            cudaStream_t stream);

// out[i] = bf16(in[i]) as FP32, Inf kept (GEMM outputs of recipes with out=bf16). May be the same memory.
void round_to_bf16(const float* in, float* out, long long count, cudaStream_t stream);

// Counts as core/stats Log2Histogram, dequantising by `factor`: counts[kBins], zeros, below, above,
// nonfinite.
void log2_histogram(const void* in, Element element, const float* factor, long long count,
                    unsigned long long* counts, cudaStream_t stream);

}  // namespace fp8lab::cuda
