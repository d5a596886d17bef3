// A multilayer perceptron: n linear layers with bias, the activation between them and none after the last.
//   fprop  y  = x w^T + b    x (batch, in), w (out, in), y (batch, out)
//   dgrad  dx = dy w         none into the network's input
//   wgrad  dw = dy^T x
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/nn/model.h"

namespace fp8lab {

template <class T>
struct Layer {
    Matrix<T> w, dw;       // (out, in)
    std::vector<T> b, db;  // (out)
    Matrix<T> x;           // (batch, in), the input of the last forward()
    Matrix<T> dy;          // (batch, out), the gradient of the last backward()
    Matrix<T> slope;       // (batch, out), the activation's derivative; unused in the last layer
};

template <class T>
class Network {
  public:
    Network(std::span<const int> sizes, Activation activation);  // all parameters zero

    // w ~ N(0, 2 / fan_in) from the seed alone, b = 0: every arm starts with the same weights.
    void initialise(std::uint64_t seed);

    const Matrix<T>& forward(const Matrix<T>& x,
                             GemmCasts<T>& casts);  // (batch, out), valid until the next call
    // Fills dw and db from dloss/dy of the last forward().
    void backward(const Matrix<T>& dy, GemmCasts<T>& casts);

    std::vector<Layer<T>>& layers() { return layers_; }
    const std::vector<Layer<T>>& layers() const { return layers_; }

  private:
    Activation activation_;
    std::vector<Layer<T>> layers_;
    Matrix<T> y_;
};

}  // namespace fp8lab
