// A trained multilayer perceptron whose layers were lowered by a method (method.h). Each layer may have formats of its own.
#pragma once

#include <vector>

#include "core/inference/methods/method.h"
#include "core/inference/network.h"

namespace fp8lab {

struct LoweredMlp {
    std::vector<LoweredLayer> layers;
    Mix mix;
    MethodOptions options;
};
// SmoothQuant, AWQ and rotations act on layers 2 to n. `train`: (rows, inputs), rows of the training; nearest and 4or6 do
// without. Throws usage_error: lower_layer(), a mix of another number of layers, no rows for a method that needs
// them, SmoothQuant or AWQ of an activation other than relu, through which no divisor can be folded.
LoweredMlp lower_mlp(const TrainedMlp& network, const Matrix<float>& train, const Mix& mix,
                     const MethodOptions& options);
// The outputs, (rows of x, outputs). `inputs`, if given: of each layer the cast of its input.
Matrix<float> run_lowered(const TrainedMlp& network, const LoweredMlp& lowered, const Matrix<float>& x,
                          std::vector<CastStats>* inputs = nullptr);

}  // namespace fp8lab
