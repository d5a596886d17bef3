// The output of a two-class model over the plane (task spiral).
#pragma once

#include <vector>

#include "core/nn/model.h"
#include "core/trainer/checkpoint.h"

namespace fp8lab {

// kDecisionGrid^2 probabilities of class 1 over [-1, 1]^2, rows from y = -1 up, by the FP32 weights.
std::vector<float> decision_grid(Model<float>& model, LossKind loss);
std::vector<float> decision_grid(const TrainSpec& spec, const ArmCheckpoint& weights);

}  // namespace fp8lab
