// Losses, their gradients and the accuracy, from the output before the update of the step (cli.md).
#pragma once

#include "core/nn/matrix.h"
#include "core/nn/tasks.h"
#include "core/nn/train_spec.h"

namespace fp8lab {

struct LossValue {
    double loss = 0;
    double accuracy = 0;  // fraction of rows whose largest output is the target's; NaN for regression
};

// y, target (batch, out) -> dy = dloss/dy, same shape. mse: mean over batch and outputs. cross_entropy:
// softmax with one-hot targets, mean over the batch. Terms in T, their sum in float64.
template <class T>
LossValue loss_and_gradient(LossKind kind, const Matrix<T>& y, const Matrix<T>& target, Matrix<T>& dy);

// The loss of a model's output, compared with the targets of the batch.
LossValue loss_and_gradient(LossKind kind, const Matrix<float>& y, const Batch& batch, Matrix<float>& dy);

// out[i] = exp(in[i] - max) / sum, shifted so that nothing overflows. May be the same memory. Returns
// log(sum) + max.
template <class T>
T softmax(std::span<const T> in, std::span<T> out);

}  // namespace fp8lab
