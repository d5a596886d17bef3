// Plain loops: the compiler turns them into vectors of each target (this file is included again by
// foreach_target.h).
#include "core/nn/ops/gate_rows.h"

#include <cmath>
#include <cstring>

#include "core/nn/ops/exponential.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/nn/ops/gate_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fp8lab::HWY_NAMESPACE {

template <class T>
void exponentials(T* row, std::size_t n, T shift) {
    for (std::size_t i = 0; i < n; ++i) row[i] = exponential(row[i] - shift);
}

// Written so that a NaN stays one.
template <GatedActivation kind, class T>
HWY_INLINE T limited_gate(T silu) {
    constexpr T limit{kGateLimit};
    return kind == GatedActivation::clamp && silu > limit ? limit : silu;
}
template <GatedActivation kind, class T>
HWY_INLINE T limited_up(T u) {
    if constexpr (kind == GatedActivation::swiglu) return u;
    constexpr T limit{kGateLimit};
    const T below = u > limit ? limit : u;
    return below < -limit ? -limit : below;
}

template <GatedActivation kind, class T>
void gate(const T* gates, const T* up, std::size_t f, T* a) {
    for (std::size_t c = 0; c < f; ++c) {
        const T silu = gates[c] / (T{1} + exponential(-gates[c]));
        a[c] = limited_gate<kind>(silu) * limited_up<kind>(up[c]);
    }
}

template <GatedActivation kind, class T>
void gate_backward(const T* da, const T* gates, const T* up, std::size_t f, T* dgate, T* dup) {
    constexpr T limit{kGateLimit};
    for (std::size_t c = 0; c < f; ++c) {
        const T g = gates[c], u = up[c], sigmoid = T{1} / (T{1} + exponential(-g)), silu = g * sigmoid;
        const T slope = sigmoid * (T{1} + g * (T{1} - sigmoid));
        T dg = da[c] * limited_up<kind>(u) * slope, du = da[c] * limited_gate<kind>(silu);
        if constexpr (kind == GatedActivation::clamp) {
            dg = silu >= limit ? T{0} : dg;
            du = std::abs(u) >= limit ? T{0} : du;
        }
        dgate[c] = dg;
        dup[c] = du;
    }
}

void exponentials_float(float* row, std::size_t n, float shift) { exponentials(row, n, shift); }
void gate_swiglu(const float* gates, const float* up, std::size_t f, float* a) {
    gate<GatedActivation::swiglu>(gates, up, f, a);
}
void gate_clamp(const float* gates, const float* up, std::size_t f, float* a) {
    gate<GatedActivation::clamp>(gates, up, f, a);
}
void gate_swiglu_backward(const float* da, const float* gates, const float* up, std::size_t f, float* dgate,
                          float* dup) {
    gate_backward<GatedActivation::swiglu>(da, gates, up, f, dgate, dup);
}
void gate_clamp_backward(const float* da, const float* gates, const float* up, std::size_t f, float* dgate,
                         float* dup) {
    gate_backward<GatedActivation::clamp>(da, gates, up, f, dgate, dup);
}

}  // namespace fp8lab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fp8lab {

HWY_EXPORT(exponentials_float);
HWY_EXPORT(gate_swiglu);
HWY_EXPORT(gate_clamp);
HWY_EXPORT(gate_swiglu_backward);
HWY_EXPORT(gate_clamp_backward);

void exponential_row(float* row, std::size_t n, float shift) {
    HWY_DYNAMIC_DISPATCH(exponentials_float)(row, n, shift);
}
void exponential_row(double* row, std::size_t n, double shift) {
    HWY_STATIC_DISPATCH(exponentials)(row, n, shift);
}

void gate_row(GatedActivation kind, const float* gate, const float* up, std::size_t f, float* a) {
    if (kind == GatedActivation::swiglu)
        HWY_DYNAMIC_DISPATCH(gate_swiglu)(gate, up, f, a);
    else
        HWY_DYNAMIC_DISPATCH(gate_clamp)(gate, up, f, a);
}
void gate_row(GatedActivation kind, const double* gate, const double* up, std::size_t f, double* a) {
    if (kind == GatedActivation::swiglu)
        HWY_STATIC_DISPATCH(gate<GatedActivation::swiglu>)(gate, up, f, a);
    else
        HWY_STATIC_DISPATCH(gate<GatedActivation::clamp>)(gate, up, f, a);
}

void gate_row_backward(GatedActivation kind, const float* da, const float* gate, const float* up,
                       std::size_t f, float* dgate, float* dup) {
    if (kind == GatedActivation::swiglu)
        HWY_DYNAMIC_DISPATCH(gate_swiglu_backward)(da, gate, up, f, dgate, dup);
    else
        HWY_DYNAMIC_DISPATCH(gate_clamp_backward)(da, gate, up, f, dgate, dup);
}
void gate_row_backward(GatedActivation kind, const double* da, const double* gate, const double* up,
                       std::size_t f, double* dgate, double* dup) {
    if (kind == GatedActivation::swiglu)
        HWY_STATIC_DISPATCH(gate_backward<GatedActivation::swiglu>)(da, gate, up, f, dgate, dup);
    else
        HWY_STATIC_DISPATCH(gate_backward<GatedActivation::clamp>)(da, gate, up, f, dgate, dup);
}

}  // namespace fp8lab
#endif  // HWY_ONCE
