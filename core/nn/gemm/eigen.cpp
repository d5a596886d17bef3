#include <Eigen/Core>

#include "core/nn/gemm.h"

namespace fp8lab {
namespace {

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::Index index(std::size_t value) { return static_cast<Eigen::Index>(value); }

template <class T>
auto map(GemmSide<T> factor, std::size_t rows, std::size_t cols) {
    if (factor.transposed) std::swap(rows, cols);
    return Eigen::Map<const RowMajor<T>, 0, Eigen::OuterStride<>>(
        factor.part.values, index(rows), index(cols), Eigen::OuterStride<>(index(factor.part.stride)));
}

template <class T>
void multiply(std::size_t rows, std::size_t cols, std::size_t depth, T factor, GemmSide<T> left,
              GemmSide<T> right, T keep, MatrixPart<T> out) {
    Eigen::Map<RowMajor<T>, 0, Eigen::OuterStride<>> to(out.values, index(rows), index(cols),
                                                        Eigen::OuterStride<>(index(out.stride)));
    if (keep == 0)
        to.setZero();
    else
        to *= keep;
    const auto a = map(left, rows, depth), b = map(right, depth, cols);
    const auto add = [&](const auto& l, const auto& r) { to.noalias() += factor * (l * r); };
    if (left.transposed && right.transposed)
        add(a.transpose(), b.transpose());
    else if (left.transposed)
        add(a.transpose(), b);
    else if (right.transposed)
        add(a, b.transpose());
    else
        add(a, b);
}

}  // namespace

BlasUse::BlasUse() = default;
BlasUse::~BlasUse() = default;

void gemm(std::size_t rows, std::size_t cols, std::size_t depth, float factor, GemmSide<float> left,
          GemmSide<float> right, float keep, MatrixPart<float> out) {
    multiply(rows, cols, depth, factor, left, right, keep, out);
}
void gemm(std::size_t rows, std::size_t cols, std::size_t depth, double factor, GemmSide<double> left,
          GemmSide<double> right, double keep, MatrixPart<double> out) {
    multiply(rows, cols, depth, factor, left, right, keep, out);
}

}  // namespace fp8lab
