#include "core/nn/ops/swiglu.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/nn/ops/gate_rows.h"
#include "core/nn/ops/loops.h"

namespace fp8lab {
template <class T>
void gated_activation(GatedActivation kind, const Matrix<T>& gate_up, Matrix<T>& a) {
    const std::size_t f = gate_up.cols / 2;
    a.resize(gate_up.rows, f);
    parallel_for(a.rows, loop_grain(4 * f), [&](std::size_t begin, std::size_t end) {
        for (std::size_t r = begin; r < end; ++r) {
            const T* const gate = gate_up.row(r).data();
            gate_row(kind, gate, gate + f, f, a.row(r).data());
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
            const T* const gate = gate_up.row(r).data();
            T* const to = dgate_up.row(r).data();
            gate_row_backward(kind, da.row(r).data(), gate, gate + f, f, to, to + f);
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
