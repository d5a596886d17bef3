// The optimisers of core/nn/optimizer.cpp, operation by operation, so that equal gradients give equal
// weights; and the source of a cast that updates as it goes.
#pragma once

#include "kernels/tile.cuh"

namespace fp8lab::cuda {

struct Factors {
    float rate, spread, decay;
    bool adamw;
};

// One weight; m and v as in core/nn/optimizer.h.
__device__ inline float updated(const Factors& f, float w, float g, float& m, float& v) {
    if (!f.adamw) return w - (f.decay * w + f.rate * g);
    constexpr float kBeta1 = 0.9F, kBeta2 = 0.999F, kEps = 1e-8F;
    constexpr auto kNew1 = static_cast<float>(1 - 0.9), kNew2 = static_cast<float>(1 - 0.999);
    m = kBeta1 * m + kNew1 * g;
    v = kBeta2 * v + kNew2 * g * g;
    return w - f.decay * w - f.rate * m / (sqrtf(v) * f.spread + kEps);
}

__device__ inline Factors factors_of(const StepInput* inputs, int slots, const ArmState* arm, bool adamw) {
    const StepInput input = inputs[arm->step % slots];
    return {adamw ? input.rate : input.lr, input.spread, input.decay, adamw};
}

// Gradient: prepare(), once a block, fetch(r, c, s), and kAhead as tile_cast has it.
template <class Gradient>
struct Update {
    static constexpr bool kBiasSums = false, kLoss = false;
    static constexpr int kAhead = Gradient::kAhead;
    struct Raw {
        Packed<float> w, g, m, v;
    };
    UpdateSource u;
    Gradient gradient;
    Factors factors{};
    bool alive = true;
    __device__ void prepare(int) {
        factors = factors_of(u.inputs, u.input_slots, u.arm, u.m != nullptr);
        alive = u.arm->alive != 0;
        gradient.prepare();
    }
    __device__ Raw fetch(int r, int c, Shape s) const {
        const std::size_t at = static_cast<std::size_t>(r) * s.padded_cols + c;
        Raw raw{fetch8_streaming(u.w + at), gradient.fetch(r, c, s), {}, {}};
        if (factors.adamw) raw.m = fetch8_streaming(u.m + at), raw.v = fetch8_streaming(u.v + at);
        return raw;
    }
    __device__ void values(const Raw& raw, int r, int c, bool real, Shape s, Eight& w) const {
        unpack(raw.w, w);
        if (!real || !alive) return;
        const std::size_t at = static_cast<std::size_t>(r) * s.padded_cols + c;
        Eight g, m, v;
        unpack(raw.g, g);
        unpack(raw.m, m);
        unpack(raw.v, v);
        bool finite = true;
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) {
            w[j] = updated(factors, w[j], g[j], m[j], v[j]);
            finite = finite && isfinite(w[j]);
        }
        store8_streaming(u.w + at, w);
        if (factors.adamw) store8_streaming(u.m + at, m), store8_streaming(u.v + at, v);
        if (!finite) *u.finite = 0;
    }
};

template <class Gradient>
constexpr bool kManyScales<Update<Gradient>> = false;  // weights cannot be updated twice

}  // namespace fp8lab::cuda
