// The gated activation and its derivatives, in the order of core/nn/ops/gate_rows.cpp.
#pragma once

#include "core/nn/ops/exponential.h"
#include "core/nn/ops/swiglu.h"
#include "kernels/layers/parts.cuh"

namespace fp8lab::cuda {

constexpr float kLimit = static_cast<float>(kGateLimit);

template <bool kFast>
__device__ inline float sigmoid(float g) {
    if constexpr (kFast) return fast_inverse(1.0F + fast_exp2(-kLog2E * g));
    return 1.0F / (1.0F + exponential(-g));
}
template <bool kFast>
__device__ inline float silu(float g) {
    if constexpr (kFast) return g * sigmoid<true>(g);
    return g / (1.0F + exponential(-g));
}

// Written so that a NaN stays one.
__device__ inline float limited_gate(float silu) { return silu > kLimit ? kLimit : silu; }
__device__ inline float limited_up(float u) {
    const float below = u > kLimit ? kLimit : u;
    return below < -kLimit ? -kLimit : below;
}

// Kernels of the plain activation are compiled without the limits of GateKind::clamp: as a condition of each element they cost
// it a sixth of its instructions, and a branch for eight elements keeps apart the loads of its rows.
enum class Limits { none, by_kind };
template <Limits kLimits>
__device__ inline bool has_limits(GateKind kind) {
    return kLimits != Limits::none && kind == GateKind::clamp;
}

// gate becomes the activation.
template <class T, Limits kLimits>
__device__ inline void activate_gate(GateKind kind, Eight& gate, const Eight& up) {
    if (has_limits<kLimits>(kind)) {
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j)
            gate[j] = limited_gate(silu<kFastMath<T>>(gate[j])) * limited_up(up[j]);
    } else {
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) gate[j] = silu<kFastMath<T>>(gate[j]) * up[j];
    }
}

// The gradients of the gate and of up from that of the activation. Fast: one rounding less in the slope.
template <class T, Limits kLimits>
__device__ inline void gate_gradients(GateKind kind, const Eight& da, const Eight& gate, const Eight& up,
                                      Eight& dgate, Eight& dup) {
    constexpr bool kFast = kFastMath<T>;
    const bool limited = has_limits<kLimits>(kind);
#pragma unroll
    for (int j = 0; j < kThreadCols; ++j) {
        const float g = gate[j], s = sigmoid<kFast>(g), silu = g * s,
                    slope = kFast ? __fmaf_rn(silu, 1.0F - s, s) : s * (1.0F + g * (1.0F - s));
        dgate[j] = da[j] * (limited ? limited_up(up[j]) : up[j]) * slope;
        dup[j] = da[j] * (limited ? limited_gate(silu) : silu);
        if (limited && silu >= kLimit) dgate[j] = 0;
        if (limited && fabsf(up[j]) >= kLimit) dup[j] = 0;
    }
}

}  // namespace fp8lab::cuda
