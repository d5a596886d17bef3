// What a block computes between its second norm and the residual stream.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/nn/models/decoder/linear.h"

namespace fp8lab {

template <class T>
class InitialWeights;

template <class T>
class FeedForward {
  public:
    virtual ~FeedForward() = default;
    virtual Matrix<T>& x() = 0;  // (tokens, d), set before forward()
    // y (tokens, d). `product`: how GEMMs are computed.
    virtual void forward(GemmCasts<T>& casts, Product<T> product, Matrix<T>& y) = 0;
    // Of the last forward(): dy (tokens, d) -> dx; fills the gradients of the parameters.
    virtual void backward(const Matrix<T>& dy, GemmCasts<T>& casts, Matrix<T>& dx) = 0;
    // Appends its parameters and tensors, in the order of the plan.
    virtual void list(std::vector<Parameter<T>>& parameters, std::vector<const Matrix<T>*>& tensors) = 0;
    virtual void initialise(const InitialWeights<T>& weights) = 0;
};

// Makes that of a block (1-based).
template <class T>
using MakeFeedForward =
    std::function<std::unique_ptr<FeedForward<T>>(const ModelPlan& plan, std::size_t block)>;

}  // namespace fp8lab
