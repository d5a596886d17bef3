// The multilayer perceptron as a model. Its sizes are TrainSpec::layers, its activation TrainSpec::activation.
#pragma once

#include "core/nn/model.h"

namespace fp8lab {

ModelEntry mlp_model();

}  // namespace fp8lab
