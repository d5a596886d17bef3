#include "core/nn/loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/nn/ops/token_loss.h"

namespace fp8lab {
namespace {

template <class T>
LossValue mean_square(const Matrix<T>& y, const Matrix<T>& target, Matrix<T>& dy) {
    const T n = static_cast<T>(y.values.size());
    double sum = 0;
    for (std::size_t i = 0; i < y.values.size(); ++i) {
        const T error = y.values[i] - target.values[i];
        sum += static_cast<double>(error * error);
        dy.values[i] = T{2} * error / n;
    }
    return {sum / static_cast<double>(n), std::numeric_limits<double>::quiet_NaN()};
}

template <class T>
LossValue cross_entropy(const Matrix<T>& y, const Matrix<T>& target, Matrix<T>& dy) {
    const T batch = static_cast<T>(y.rows);
    double sum = 0;
    std::size_t right = 0;
    for (std::size_t r = 0; r < y.rows; ++r) {
        const auto scores = y.row(r), wanted = target.row(r);
        const auto gradient = dy.row(r);
        const T log_sum = softmax(scores, gradient);
        const auto label = static_cast<std::size_t>(std::ranges::max_element(wanted) - wanted.begin());
        right += std::ranges::max_element(scores) - scores.begin() == static_cast<std::ptrdiff_t>(label);
        sum += static_cast<double>(log_sum - scores[label]);
        for (std::size_t c = 0; c < y.cols; ++c) gradient[c] = (gradient[c] - wanted[c]) / batch;
    }
    const double rows = static_cast<double>(y.rows);
    return {sum / rows, static_cast<double>(right) / rows};
}

}  // namespace

template <class T>
T softmax(std::span<const T> in, std::span<T> out) {
    const T top = std::ranges::max(in);
    T sum = 0;
    for (std::size_t i = 0; i < in.size(); ++i) sum += out[i] = std::exp(in[i] - top);
    for (T& p : out) p /= sum;
    return std::log(sum) + top;
}

template <class T>
LossValue loss_and_gradient(LossKind kind, const Matrix<T>& y, const Matrix<T>& target, Matrix<T>& dy) {
    dy.resize(y.rows, y.cols);
    return kind == LossKind::mse ? mean_square(y, target, dy) : cross_entropy(y, target, dy);
}

LossValue loss_and_gradient(LossKind kind, const Matrix<float>& y, const Batch& batch, Matrix<float>& dy) {
    if (const auto* tokens = std::get_if<TokenBatch>(&batch)) return token_loss(y, *tokens, dy);
    return loss_and_gradient(kind, y, std::get<DenseBatch>(batch).y, dy);
}

template float softmax(std::span<const float>, std::span<float>);
template double softmax(std::span<const double>, std::span<double>);
template LossValue loss_and_gradient(LossKind, const Matrix<float>&, const Matrix<float>&, Matrix<float>&);
template LossValue loss_and_gradient(LossKind, const Matrix<double>&, const Matrix<double>&, Matrix<double>&);

}  // namespace fp8lab
