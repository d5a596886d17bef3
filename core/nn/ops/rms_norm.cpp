#include "core/nn/ops/rms_norm.h"

#include <cmath>

#include "core/nn/ops/loops.h"

namespace fp8lab {

template <class T>
void rms_norm(const Matrix<T>& x, const std::vector<T>& g, double eps, Matrix<T>& normalised,
              std::vector<T>& inverse_rms, Matrix<T>& y) {
    const std::size_t d = x.cols;
    normalised.resize(x.rows, d);
    y.resize(x.rows, d);
    inverse_rms.resize(x.rows);
    parallel_for(x.rows, loop_grain(d), [&](std::size_t begin, std::size_t end) {
        for (std::size_t r = begin; r < end; ++r) {
            const T* const from = x.row(r).data();
            const T* const gain = g.data();
            T* const unit = normalised.row(r).data();
            T* const to = y.row(r).data();
            const T squares = dot(from, from, d);
            const T inverse = T{1} / std::sqrt(squares / static_cast<T>(d) + static_cast<T>(eps));
            inverse_rms[r] = inverse;
            for (std::size_t c = 0; c < d; ++c) unit[c] = from[c] * inverse;
            for (std::size_t c = 0; c < d; ++c) to[c] = unit[c] * gain[c];
        }
    });
}

template <class T>
void rms_norm_backward(const Matrix<T>& dy, const Matrix<T>& normalised, const std::vector<T>& inverse_rms,
                       const std::vector<T>& g, Matrix<T>& dx, std::vector<T>& dg) {
    const std::size_t d = dy.cols;
    dx.resize(dy.rows, d);
    dg.assign(d, T{0});
    for_column_strips(dy.rows, d, [&](std::size_t begin, std::size_t end) {
        T* const sum = dg.data();
        for (std::size_t r = 0; r < dy.rows; ++r) {
            const T* const gradient = dy.row(r).data();
            const T* const unit = normalised.row(r).data();
            for (std::size_t c = begin; c < end; ++c) sum[c] += gradient[c] * unit[c];
        }
    });
    parallel_for(dy.rows, loop_grain(d), [&](std::size_t begin, std::size_t end) {
        for (std::size_t r = begin; r < end; ++r) {
            const T* const gradient = dy.row(r).data();
            const T* const unit = normalised.row(r).data();
            const T* const gain = g.data();
            T* const to = dx.row(r).data();
            for (std::size_t c = 0; c < d; ++c) to[c] = gradient[c] * gain[c];
            const T mean = dot(to, unit, d) / static_cast<T>(d), inverse = inverse_rms[r];
            for (std::size_t c = 0; c < d; ++c) to[c] = inverse * (to[c] - unit[c] * mean);
        }
    });
}

template void rms_norm(const Matrix<float>&, const std::vector<float>&, double, Matrix<float>&,
                       std::vector<float>&, Matrix<float>&);
template void rms_norm(const Matrix<double>&, const std::vector<double>&, double, Matrix<double>&,
                       std::vector<double>&, Matrix<double>&);
template void rms_norm_backward(const Matrix<float>&, const Matrix<float>&, const std::vector<float>&,
                                const std::vector<float>&, Matrix<float>&, std::vector<float>&);
template void rms_norm_backward(const Matrix<double>&, const Matrix<double>&, const std::vector<double>&,
                                const std::vector<double>&, Matrix<double>&, std::vector<double>&);

}  // namespace fp8lab
