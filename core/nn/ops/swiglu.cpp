#include "core/nn/ops/swiglu.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/nn/ops/exponential.h"
#include "core/nn/ops/loops.h"

namespace fp8lab {
namespace {

// Written so that a NaN stays one.
template <GatedActivation kind, class T>
T limited_gate(T silu) {
    if constexpr (kind == GatedActivation::swiglu) return silu;
    constexpr T limit{kGateLimit};
    return silu > limit ? limit : silu;
}
template <GatedActivation kind, class T>
T limited_up(T u) {
    if constexpr (kind == GatedActivation::swiglu) return u;
    constexpr T limit{kGateLimit};
    const T below = u > limit ? limit : u;
    return below < -limit ? -limit : below;
}

template <GatedActivation kind, class T>
void gate_row(const T* gate, const T* up, std::size_t f, T* a) {
    for (std::size_t c = 0; c < f; ++c) {
        const T silu = gate[c] / (T{1} + exponential(-gate[c]));
        a[c] = limited_gate<kind>(silu) * limited_up<kind>(up[c]);
    }
}

template <GatedActivation kind, class T>
void gate_row_backward(const T* da, const T* gate, const T* up, std::size_t f, T* dgate, T* dup) {
    constexpr T limit{kGateLimit};
    for (std::size_t c = 0; c < f; ++c) {
        const T g = gate[c], u = up[c], sigmoid = T{1} / (T{1} + exponential(-g)), silu = g * sigmoid;
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

}  // namespace

template <class T>
void gated_activation(GatedActivation kind, const Matrix<T>& gate_up, Matrix<T>& a) {
    const std::size_t f = gate_up.cols / 2;
    a.resize(gate_up.rows, f);
    parallel_for(a.rows, loop_grain(4 * f), [&](std::size_t begin, std::size_t end) {
        for (std::size_t r = begin; r < end; ++r) {
            const T* const gate = gate_up.row(r).data();
            T* const to = a.row(r).data();
            if (kind == GatedActivation::swiglu)
                gate_row<GatedActivation::swiglu>(gate, gate + f, f, to);
            else
                gate_row<GatedActivation::clamp>(gate, gate + f, f, to);
        }
    });
}

template <class T>
void gated_activation_backward(GatedActivation kind, const Matrix<T>& da, const Matrix<T>& gate_up,
                               Matrix<T>& dgate_up) {
    const std::size_t f = da.cols;
    dgate_up.resize(da.rows, 2 * f);
    parallel_for(da.rows, loop_grain(4 * f), [&](std::size_t begin, std::size_t end) {
        for (std::size_t r = begin; r < end; ++r) {
            const T* const gradient = da.row(r).data();
            const T* const gate = gate_up.row(r).data();
            T* const to = dgate_up.row(r).data();
            if (kind == GatedActivation::swiglu)
                gate_row_backward<GatedActivation::swiglu>(gradient, gate, gate + f, f, to, to + f);
            else
                gate_row_backward<GatedActivation::clamp>(gradient, gate, gate + f, f, to, to + f);
        }
    });
}

template <class T>
void channel_scales(const Matrix<T>& a, std::vector<T>& scales) {
    scales.assign(a.cols, T{0});
    for_column_strips(a.rows, a.cols, [&](std::size_t begin, std::size_t end) {
        T* const amax = scales.data();
        for (std::size_t r = 0; r < a.rows; ++r) {
            const T* const row = a.row(r).data();
            for (std::size_t c = begin; c < end; ++c) {
                const T size = std::abs(row[c]);
                amax[c] = amax[c] < size ? size : amax[c];
            }
        }
    });
    for (T& s : scales) {
        int exponent = 0;  // amax = m 2^exponent, 1/2 <= m < 1
        const double m = std::isfinite(s) ? std::frexp(static_cast<double>(s), &exponent) : 0.0;
        // log2 m rounds to 0 or -1; no number of a format is sqrt(1/2).
        if (m < std::numbers::sqrt2 / 2) --exponent;
        constexpr int kLimit = 126;
        s = m == 0.0 ? T{1} : static_cast<T>(std::ldexp(1.0, std::clamp(-exponent, -kLimit, kLimit)));
    }
}

template <class T>
void scale_columns(const Matrix<T>& m, const std::vector<T>& scales, Matrix<T>& out) {
    if (&out != &m) out = m;
    parallel_for(out.rows, loop_grain(out.cols), [&](std::size_t begin, std::size_t end) {
        const T* const factor = scales.data();
        for (std::size_t r = begin; r < end; ++r) {
            T* const row = out.row(r).data();
            for (std::size_t c = 0; c < out.cols; ++c) row[c] *= factor[c];
        }
    });
}

template <class T>
void unscale_columns(const Matrix<T>& m, const std::vector<T>& scales, Matrix<T>& out) {
    std::vector<T> inverse(scales.size());
    for (std::size_t c = 0; c < scales.size(); ++c) inverse[c] = T{1} / scales[c];
    scale_columns(m, inverse, out);
}

#define FP8LAB_SWIGLU(T)                                                                         \
    template void gated_activation(GatedActivation, const Matrix<T>&, Matrix<T>&);               \
    template void gated_activation_backward(GatedActivation, const Matrix<T>&, const Matrix<T>&, \
                                            Matrix<T>&);                                         \
    template void channel_scales(const Matrix<T>&, std::vector<T>&);                             \
    template void scale_columns(const Matrix<T>&, const std::vector<T>&, Matrix<T>&);            \
    template void unscale_columns(const Matrix<T>&, const std::vector<T>&, Matrix<T>&);
FP8LAB_SWIGLU(float)
FP8LAB_SWIGLU(double)
#undef FP8LAB_SWIGLU

}  // namespace fp8lab
