// A change of recipe during a training.
#pragma once

#include <vector>

#include "core/nn/model_plan.h"
#include "core/trainer/checkpoint.h"

namespace fp8lab::cuda {

// The scales that stay where an arm goes from one recipe to another: of casts to the same format.
std::vector<ScaleCheckpoint> kept_scales(const std::vector<ScaleCheckpoint>& scales, const ModelPlan& plan,
                                         const Recipe& from, const Recipe& to);

}  // namespace fp8lab::cuda
