// The tensors of the multilayer perceptron: x (a layer's input), w and dy (the gradient at its output) of layer 1..n.
// In ModelPlan::tensors they stand as x1 w1 dy1 x2 w2 dy2 ...
#pragma once

#include <string>

#include "core/nn/model_plan.h"

namespace fp8lab {

struct MlpTensor {
    TensorClass tensor = TensorClass::x;
    int layer = 1;

    MlpTensor() = default;
    MlpTensor(TensorClass tensor_class, int number) : tensor(tensor_class), layer(number) {}
    explicit MlpTensor(TensorId id)
        : tensor(static_cast<TensorClass>(id.index % 3)), layer(id.index / 3 + 1) {}
    operator TensorId() const {
        return {static_cast<std::uint16_t>((layer - 1) * 3 + static_cast<int>(tensor))};
    }
    bool operator==(const MlpTensor&) const = default;
};
std::string to_string(MlpTensor id);  // "dy2"

ModelPlan mlp_plan(std::span<const int> sizes);  // d0, ..., dn: n linear layers

}  // namespace fp8lab
