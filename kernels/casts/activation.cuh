// Activations and their slopes on the device, in FP32: core/nn/activation.cpp's formulas. kFast: the
// hardware's tanh (about 2^-11 relative) and fused multiply-adds, for the tensor-core path, whose results are
// rounded to 8 bits or to BF16 at once.
#pragma once

#include "kernels/device/instructions.cuh"
#include "kernels/device/launch.h"

namespace fp8lab::cuda {

template <bool kFast>
__device__ inline float tanh_of(float x) {
    if constexpr (!kFast) return tanhf(x);
    return fast_tanh(x);
}

constexpr float kGeluScale = 0.7978845608F, kGeluCubic = 0.044715F;  // sqrt(2 / pi)

// How much of the pre-activation activate() and slope() are given: the fast GELU begins with its half, which costs
// nothing where the bias is added: fmaf(h, kTaken, kTaken * bias), half of the same sum.
template <bool kFast, ActivationKind kind>
constexpr float kTaken = (kFast && kind == ActivationKind::gelu) ? 0.5F : 1.0F;

// tanh() in GELU.
__device__ inline float fast_gelu_tanh(float half) {
    return tanh_of<true>(half * fmaf(8 * kGeluScale * kGeluCubic, half * half, 2 * kGeluScale));
}

template <bool kFast, ActivationKind kind>
__device__ inline float activate(float z) {
    if constexpr (kind == ActivationKind::relu) return fmaxf(z, 0.0F);
    if constexpr (kind == ActivationKind::tanh) return tanh_of<kFast>(z);
    if constexpr (kFast) return fmaf(z, fast_gelu_tanh(z), z);
    const float t = tanh_of<kFast>(kGeluScale * z * (1.0F + kGeluCubic * (z * z)));
    return 0.5F * z * (1.0F + t);
}

template <bool kFast, ActivationKind kind>
__device__ inline float slope(float z) {
    if constexpr (kind == ActivationKind::relu) return z > 0 ? 1.0F : 0.0F;
    if constexpr (kind == ActivationKind::tanh) {
        const float t = tanh_of<kFast>(z);
        return 1.0F - t * t;
    }
    if constexpr (kFast) {
        const float t = fast_gelu_tanh(z), inner = fmaf(12 * kGeluScale * kGeluCubic, z * z, kGeluScale);
        return fmaf(z * inner, fmaf(-t, t, 1.0F), fmaf(0.5F, t, 0.5F));
    }
    const float square = z * z, t = tanh_of<kFast>(kGeluScale * z * (1.0F + kGeluCubic * square));
    return 0.5F * (1.0F + t) + 0.5F * z * (1.0F - t * t) * kGeluScale * (1.0F + 3 * kGeluCubic * square);
}

// run.template operator()<kind>(): one branch for many elements.
template <class Run>
__device__ inline void with_kind(ActivationKind kind, Run run) {
    switch (kind) {
        case ActivationKind::tanh:
            return run.template operator()<ActivationKind::tanh>();
        case ActivationKind::gelu:
            return run.template operator()<ActivationKind::gelu>();
        case ActivationKind::relu:
            return run.template operator()<ActivationKind::relu>();
    }
}

}  // namespace fp8lab::cuda
