#include "core/nn/matrix.h"

#include <cblas.h>

#include <Eigen/Core>

#include "core/threads/parallel.h"

namespace fp8lab {
namespace {

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class T>
Eigen::Map<const RowMajor<T>> view(const Matrix<T>& m) {
    return {m.values.data(), static_cast<Eigen::Index>(m.rows), static_cast<Eigen::Index>(m.cols)};
}
template <class T>
Eigen::Map<RowMajor<T>> view(Matrix<T>& m) {
    return {m.values.data(), static_cast<Eigen::Index>(m.rows), static_cast<Eigen::Index>(m.cols)};
}

// Waking a second thread costs OpenBLAS more than a product of this size takes on one.
constexpr std::size_t kSmallProduct = 4'000'000;  // multiply-adds

void use_threads_for(std::size_t multiply_adds) {
    openblas_set_num_threads(multiply_adds < kSmallProduct ? 1 : threads());
}

}  // namespace

template <class T>
void multiply_nt(const Matrix<T>& a, const Matrix<T>& b, Matrix<T>& out) {
    out.resize(a.rows, b.rows);
    use_threads_for(a.rows * a.cols * b.rows);
    view(out).noalias() = view(a) * view(b).transpose();
}

template <class T>
void multiply_nn(const Matrix<T>& a, const Matrix<T>& b, Matrix<T>& out) {
    out.resize(a.rows, b.cols);
    use_threads_for(a.rows * a.cols * b.cols);
    view(out).noalias() = view(a) * view(b);
}

template <class T>
void multiply_tn(const Matrix<T>& a, const Matrix<T>& b, Matrix<T>& out) {
    out.resize(a.cols, b.cols);
    use_threads_for(a.rows * a.cols * b.cols);
    view(out).noalias() = view(a).transpose() * view(b);
}

template void multiply_nt(const Matrix<float>&, const Matrix<float>&, Matrix<float>&);
template void multiply_nn(const Matrix<float>&, const Matrix<float>&, Matrix<float>&);
template void multiply_tn(const Matrix<float>&, const Matrix<float>&, Matrix<float>&);
template void multiply_nt(const Matrix<double>&, const Matrix<double>&, Matrix<double>&);
template void multiply_nn(const Matrix<double>&, const Matrix<double>&, Matrix<double>&);
template void multiply_tn(const Matrix<double>&, const Matrix<double>&, Matrix<double>&);

}  // namespace fp8lab
