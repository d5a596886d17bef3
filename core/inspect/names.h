// What the name of a tensor says: its kind, and what it is in a training.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace fp8lab {

// The name with every part between dots that is a number replaced by "*": "layers.*.mlp.up.weight". Tensors of one kind
// are the same parameter of different layers.
std::string kind_of(std::string_view name);

// w: weights. x: inputs of layers. dy: gradients. state: moments of an optimiser.
enum class TensorUse { w, x, dy, state };
inline constexpr std::array kTensorUses = {TensorUse::w, TensorUse::x, TensorUse::dy, TensorUse::state};
std::string_view to_string(TensorUse use);

// The parts between dots decide: dy where one is grad, dact or dy; state where the first is adam, exp_avg,
// exp_avg_sq, m or v; x where one is act or x; else w. The first part that is one of these decides.
TensorUse use_of(std::string_view name);

}  // namespace fp8lab
