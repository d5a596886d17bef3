// Spans of a trace (core/threads/trace.h) that are named as the GEMMs of a model: "fprop 1.qkv", "GEMM fprop 1.qkv".
#pragma once

#include <string>

#include "core/nn/model.h"
#include "core/threads/trace.h"

namespace fp8lab {

// A pass of a layer: the casts of its operands, its product, and what follows up to the next layer. `of`: a tensor of its GEMM.
template <class T>
class PassSpan {
  public:
    PassSpan(const GemmCasts<T>& casts, const char* pass, TensorId of)
        : casts_(casts), pass_(pass), of_(of), span_(pass, [&] { return name(); }) {}
    // Computes the product under a span of its own: product(a, b, out).
    template <class Product>
    void gemm(const Matrix<T>& a, const Matrix<T>& b, const Product& product) const {
        const TraceSpan span(
            "gemm", [&] { return "GEMM " + name(); },
            [&] {
                return std::to_string(a.rows) + " x " + std::to_string(a.cols) + ", " +
                       std::to_string(b.rows) + " x " + std::to_string(b.cols);
            });
        product(a, b);
    }

  private:
    std::string name() const { return std::string(pass_) + " " + std::string(casts_.gemm_name(of_)); }

    const GemmCasts<T>& casts_;
    const char* pass_;
    TensorId of_;
    TraceSpan span_;
};

}  // namespace fp8lab
