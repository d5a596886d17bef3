// Optimisers on flat arrays: one call per parameter tensor and step. Training is in FP32; double is the reference of
// the tests, through the same code.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/nn/train_spec.h"

namespace fp8lab {

template <class T>
struct MomentsOf {
    std::vector<T> m, v;  // AdamW only; empty for SGD
};
using Moments = MomentsOf<float>;

// AdamW: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", algorithm 2, with PyTorch's
// defaults of beta and eps, decay w -= lr * weight_decay * w. SGD: no momentum, the same
// decay.
struct OptimizerStep {
    OptimizerKind kind = OptimizerKind::adamw;
    double lr = 0, weight_decay = 0;
    int step = 0;  // 0-based: the bias corrections use step + 1
    double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
};

// w -= the update from gradient g; moments grow to w's size on first use. Returns false when a value of w
// became non-finite.
bool update(const OptimizerStep& how, std::span<float> w, std::span<const float> g, Moments& moments);
bool update(const OptimizerStep& how, std::span<double> w, std::span<const double> g,
            MomentsOf<double>& moments);

// How many weights AdamW's last update moved by more than `limit`, the decay not counted: |update| = lr mhat / (sqrt(vhat) +
// eps), from the moments that update() has left. Without moments: 0.
std::int64_t count_updates_above(const OptimizerStep& how, const Moments& moments, double limit);

// Multiplies the gradients by limit / (norm + 1e-6) where that is below 1, as PyTorch's clip_grad_norm_ does; norm: of
// all of them together, summed in float64. Returns the norm.
double limit_norm(std::span<const std::span<float>> gradients, double limit);
double limit_norm(std::span<const std::span<double>> gradients, double limit);

}  // namespace fp8lab
