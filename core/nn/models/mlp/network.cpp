#include "core/nn/models/mlp/network.h"

#include <cmath>
#include <type_traits>

#include "core/base/rng.h"
#include "core/nn/models/gemm_span.h"
#include "core/nn/models/mlp/narrow_sums.h"
#include "core/nn/models/mlp/tensors.h"
#include "core/nn/ops/activation.h"
#include "core/nn/streams.h"

namespace fp8lab {

template <class T>
Network<T>::Network(std::span<const int> sizes, Activation activation) : activation_(activation) {
    for (std::size_t l = 0; l + 1 < sizes.size(); ++l) {
        const auto in = static_cast<std::size_t>(sizes[l]), out = static_cast<std::size_t>(sizes[l + 1]);
        Layer<T> layer;
        layer.w = layer.dw = Matrix<T>(out, in);
        layer.b = layer.db = std::vector<T>(out);
        layers_.push_back(std::move(layer));
    }
}

template <class T>
void Network<T>::initialise(std::uint64_t seed) {
    for (std::size_t l = 0; l < layers_.size(); ++l) {
        Layer<T>& layer = layers_[l];
        Rng rng(seed, stream(Draw::initial_weights, static_cast<int>(l) + 1));
        const T sigma = static_cast<T>(std::sqrt(2.0 / static_cast<double>(layer.w.cols)));
        if constexpr (std::is_same_v<T, float>)
            rng.fill_normal(layer.w.values, sigma);
        else
            for (T& w : layer.w.values) w = sigma * static_cast<T>(rng.normal());
        layer.b.assign(layer.b.size(), T{0});
    }
}

template <class T>
const Matrix<T>& Network<T>::forward(const Matrix<T>& x, GemmCasts<T>& casts) {
    layers_.front().x = x;
    for (std::size_t l = 0; l < layers_.size(); ++l) {
        Layer<T>& layer = layers_[l];
        const int number = static_cast<int>(l) + 1;
        const PassSpan<T> pass(casts, "fprop", MlpTensor{TensorClass::x, number});
        const Matrix<T>& input = casts.operand(MlpTensor{TensorClass::x, number}, Along::cols, layer.x);
        const MlpTensor weight{TensorClass::w, number};
        const Matrix<T>& w = casts.operand(weight, Along::cols, layer.w);
        pass.gemm(input, w, [&](const auto& a, const auto& b) { multiply_nt(a, b, y_, casts.sum_bits()); });
        casts.round_output(y_);
        casts.note_product(weight, input, w, y_);
        for (std::size_t r = 0; r < y_.rows; ++r) {
            const auto row = y_.row(r);
            for (std::size_t c = 0; c < row.size(); ++c) row[c] += layer.b[c];
        }
        if (l + 1 == layers_.size()) break;
        Matrix<T>& next = layers_[l + 1].x;
        next.resize(y_.rows, y_.cols);
        layer.slope.resize(y_.rows, y_.cols);
        activate<T>(activation_, y_.values, next.values, layer.slope.values);
    }
    return y_;
}

template <class T>
void Network<T>::backward(const Matrix<T>& dy, GemmCasts<T>& casts) {
    layers_.back().dy = dy;
    for (std::size_t l = layers_.size(); l-- > 0;) {
        Layer<T>& layer = layers_[l];
        const int number = static_cast<int>(l) + 1;
        const MlpTensor id{TensorClass::dy, number};
        if (l > 0) {
            const PassSpan<T> pass(casts, "dgrad", id);
            Layer<T>& below = layers_[l - 1];
            const Matrix<T>& dy_cast = casts.operand(id, Along::cols, layer.dy);
            pass.gemm(dy_cast, casts.operand(MlpTensor{TensorClass::w, number}, Along::rows, layer.w),
                      [&](const auto& a, const auto& b) { multiply_nn(a, b, below.dy, casts.sum_bits()); });
            casts.round_output(below.dy);
            for (std::size_t i = 0; i < below.dy.values.size(); ++i)
                below.dy.values[i] *= below.slope.values[i];
        }
        const PassSpan<T> pass(casts, "wgrad", id);
        const Matrix<T>& dy_cast = casts.operand(id, Along::rows, layer.dy);
        pass.gemm(dy_cast, casts.operand(MlpTensor{TensorClass::x, number}, Along::rows, layer.x),
                  [&](const auto& a, const auto& b) { multiply_tn(a, b, layer.dw, casts.sum_bits()); });
        casts.round_gradient(layer.dw);
        layer.db.assign(layer.db.size(), T{0});
        for (std::size_t r = 0; r < layer.dy.rows; ++r) {
            const auto row = layer.dy.row(r);
            for (std::size_t c = 0; c < row.size(); ++c) layer.db[c] += row[c];
        }
    }
}

template class Network<float>;
template class Network<double>;

}  // namespace fp8lab
