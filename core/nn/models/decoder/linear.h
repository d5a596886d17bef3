// A linear layer without bias: fprop y = x w^T, dgrad dx = dy w, wgrad dw = dy^T x. Each GEMM reads its operands
// after the cast of the recipe.
#pragma once

#include "core/nn/model.h"
#include "core/nn/models/gemm_span.h"

namespace fp8lab {

// a (M, K), b (N, K) -> a b^T: multiply_nt(), or multiply_rows() of a pass with a cache.
template <class T>
using Product = void (*)(const Matrix<T>& a, const Matrix<T>& b, Matrix<T>& out);

template <class T>
struct Linear {
    TensorId x_id, w_id, dy_id;
    Matrix<T> x;      // (tokens, in), set before forward()
    Matrix<T> dy;     // (tokens, out), set before backward()
    Matrix<T> w, dw;  // (out, in)

    // x is the first of the three tensors of the layer, as ModelPlan::add_linear() returns it.
    explicit Linear(TensorId first)
        : x_id(first),
          w_id{static_cast<std::uint16_t>(first.index + 1)},
          dy_id{static_cast<std::uint16_t>(first.index + 2)} {}

    void forward(GemmCasts<T>& casts, const Matrix<T>& weights, Matrix<T>& y,
                 Product<T> product = multiply_nt<T>) {
        const PassSpan<T> pass(casts, "fprop", x_id);
        const Matrix<T>& input = casts.operand(x_id, Along::cols, x);  // first: GemmCasts::operand()
        pass.gemm(input, casts.operand(w_id, Along::cols, weights),
                  [&](const auto& a, const auto& b) { product(a, b, y); });
        casts.round_output(y);
    }
    void backward(GemmCasts<T>& casts, const Matrix<T>& weights, Matrix<T>& dx) {
        dgrad(casts, weights, dx);
        wgrad(casts);
    }
    void backward(GemmCasts<T>& casts, Matrix<T>& dx) { backward(casts, w, dx); }

    // Appends its weight, and x, w and dy.
    void list(std::vector<Parameter<T>>& parameters, std::vector<const Matrix<T>*>& tensors) {
        parameters.push_back({w.values, dw.values});
        tensors.insert(tensors.end(), {&x, &w, &dy});
    }

  private:
    void dgrad(GemmCasts<T>& casts, const Matrix<T>& weights, Matrix<T>& dx) {
        const PassSpan<T> pass(casts, "dgrad", dy_id);
        const Matrix<T>& dy_cast = casts.operand(dy_id, Along::cols, dy);
        pass.gemm(dy_cast, casts.operand(w_id, Along::rows, weights),
                  [&](const auto& a, const auto& b) { multiply_nn(a, b, dx); });
        casts.round_output(dx);
    }
    void wgrad(GemmCasts<T>& casts) {
        const PassSpan<T> pass(casts, "wgrad", dy_id);
        const Matrix<T>& dy_cast = casts.operand(dy_id, Along::rows, dy);
        pass.gemm(dy_cast, casts.operand(x_id, Along::rows, x),
                  [&](const auto& a, const auto& b) { multiply_tn(a, b, dw); });
        casts.round_gradient(dw);
    }
};

}  // namespace fp8lab
