// The optimisers of core/nn/optimizer.cpp, operation by operation, so that equal gradients give equal
// weights where these are FP32; and the source of a cast that updates as it goes.
#pragma once

#include "kernels/casts/tile.cuh"

namespace fp8lab::cuda {

// AdamW's constants in FP32.
struct AdamWConstants {
    float beta1, beta2, eps, new1, new2;  // new: 1 - beta
};
inline AdamWConstants constants_of(const AdamW& how) {
    return {static_cast<float>(how.beta1), static_cast<float>(how.beta2), static_cast<float>(how.eps),
            static_cast<float>(1 - how.beta1), static_cast<float>(1 - how.beta2)};
}

struct Factors {
    float rate, spread, decay;
    bool adamw;
    float gradient;  // multiplies it
};

__device__ inline void new_moments(const AdamWConstants& how, float g, float& m, float& v) {
    m = how.beta1 * m + how.new1 * g;
    v = how.beta2 * v + how.new2 * g * g;
}
// One weight; m and v as in core/nn/optimizer.h.
__device__ inline float updated(const Factors& f, const AdamWConstants& how, float w, float g, float& m,
                                float& v) {
    g *= f.gradient;
    if (!f.adamw) return w - (f.decay * w + f.rate * g);
    new_moments(how, g, m, v);
    return w - f.decay * w - f.rate * m / (sqrtf(v) * f.spread + how.eps);
}
// What AdamW moves eight weights by, with the same results. Where all operands are in the middle of the range, as nearly
// always, the roots and quotients have no branch each. The limits of spread and eps keep the divisor between 2^-30 and 2^51.
__device__ inline void moves_of_eight(const Factors& f, const AdamWConstants& how, const Eight& g, Eight& m,
                                      Eight& v, Eight& move) {
    std::uint32_t outermost = 0;
#pragma unroll
    for (int j = 0; j < kThreadCols; ++j) {
        new_moments(how, g[j] * f.gradient, m[j], v[j]);
        move[j] = f.rate * m[j];
        outermost = max(outermost, max(beyond_least(v[j]), beyond_least(fabsf(move[j]))));
    }
    if (in_the_middle(outermost) && f.spread >= 1 && f.spread <= 0x1p20F && how.eps <= 1) {
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j)
            move[j] = quotient_in_the_middle(move[j], root_in_the_middle(v[j]) * f.spread + how.eps);
    } else {
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) move[j] = move[j] / (sqrtf(v[j]) * f.spread + how.eps);
    }
}
__device__ inline void update_eight(const Factors& f, const AdamWConstants& how, Eight& w, const Eight& g,
                                    Eight& m, Eight& v) {
    Eight move;
    moves_of_eight(f, how, g, m, v, move);
#pragma unroll
    for (int j = 0; j < kThreadCols; ++j) w[j] = w[j] - f.decay * w[j] - move[j];
}
// The same where weights and moments are BF16 in memory and no CPU has to give the same bits: fused, with approximations of the
// root and the inverse, in half the instructions. A step runs at the power limit of its GEMMs, so that instructions count.
__device__ inline float updated_fast(const Factors& f, const AdamWConstants& how, float w, float g, float& m,
                                     float& v) {
    g *= f.gradient;
    if (!f.adamw) return fmaf(-f.decay, w, fmaf(-f.rate, g, w));
    m = fmaf(how.beta1, m, how.new1 * g);
    v = fmaf(how.beta2, v, how.new2 * g * g);
    const float inverse = fast_inverse(fmaf(fast_root(v), f.spread, how.eps));
    return fmaf(-(f.rate * m), inverse, fmaf(-f.decay, w, w));
}

__device__ inline Factors factors_of(const StepInput* inputs, int slots, const ArmState* arm, bool adamw,
                                     const float* gradient_factor) {
    const StepInput input = inputs[arm->step % slots];
    return {adamw ? input.rate : input.lr, input.spread, input.decay, adamw,
            gradient_factor ? *gradient_factor : 1.0F};
}

// T: of weights and moments, float or BF16; see UpdateSource. Gradient: prepare(), once a block; fetch(r, c,
// s), whose Raw values() unpacks; kAhead as tile_cast has it.
template <class Gradient, class T = float>
struct Update {
    static constexpr bool kBiasSums = false, kLoss = false;
    static constexpr int kAhead = Gradient::kAhead;
    struct Raw {
        Packed<T> w;
        typename Gradient::Raw g;
        Packed<T> m, v;
    };
    UpdateSource u;
    Gradient gradient;
    AdamWConstants adamw = constants_of(u.adamw);
    Factors factors{};
    bool alive = true;
    __device__ void prepare(int) {
        factors = factors_of(u.inputs, u.input_slots, u.arm, u.m != nullptr, u.gradient_factor);
        alive = u.arm->alive != 0;
        gradient.prepare();
    }
    static __device__ T* in(void* matrix, int r, int c, Shape s) {
        return static_cast<T*>(matrix) + static_cast<std::size_t>(r) * s.padded_cols + c;
    }
    __device__ Raw fetch(int r, int c, Shape s) const {
        Raw raw{fetch8_streaming(in(u.w, r, c, s)), gradient.fetch(r, c, s), {}, {}};
        if (factors.adamw)
            raw.m = fetch8_streaming(in(u.m, r, c, s)), raw.v = fetch8_streaming(in(u.v, r, c, s));
        return raw;
    }
    __device__ void values(const Raw& raw, int r, int c, bool real, Shape s, Eight& w) const {
        unpack(raw.w, w);
        if (!real || !alive) return;
        Eight g, m, v;
        gradient.values(raw.g, r, c, g);
        unpack(raw.m, m);
        unpack(raw.v, v);
        if (std::is_same_v<T, float> && factors.adamw)
            update_eight(factors, adamw, w, g, m, v);
        else
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j)
                w[j] = (std::is_same_v<T, float> ? updated : updated_fast)(factors, adamw, w[j], g[j], m[j],
                                                                           v[j]);
        float most = 0;
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) most = larger(most, w[j]);
        if constexpr (std::is_same_v<T, float>) store8_streaming(in(u.w, r, c, s), w);
        if (factors.adamw) store8_streaming(in(u.m, r, c, s), m), store8_streaming(in(u.v, r, c, s), v);
        if (!isfinite(most)) *u.finite = 0;
    }
};

template <class Gradient, class T>
constexpr bool kManyScales<Update<Gradient, T>> = false;  // weights cannot be updated twice
template <class Gradient, class T>
constexpr bool kMayBeE5m2<Update<Gradient, T>> = false;

}  // namespace fp8lab::cuda
