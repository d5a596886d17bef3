// The FLOP of a training step for each token, and the share of a GPU's peak that a training uses (MFU).
//
//   matrices   6 N: 2 for the forward pass and 4 for the backward pass of each weight in ModelSize::matrices: matrices that
//              the token goes through and the head, without embedding table, biases and norms;
//   attention  12 W K for each layer, W its attention_width, K the number of keys that a query meets on average: T of T tokens
//              without a mask, T / 2 with the causal one; under a window of w < T tokens w, and w - w w / 2 T with both.
//   MFU        FLOP of a token x tokens/s / peak. Activations that are computed again are not counted (PaLM, arXiv 2204.02311,
//              appendix B, which counts attention without the causal mask: that choice is an argument here).
#pragma once

#include "core/plan/model_size.h"

namespace fp8lab::plan {

struct TokenFlop {
    double matrices = 0, attention = 0;
    double all() const { return matrices + attention; }
};
TokenFlop training_flop(const ModelSize& model, double tokens, bool causal);

// 0.4 is 40 %. `peak`: dense, TFLOP/s.
double mfu(const TokenFlop& flop, double tokens_per_second, double peak);

}  // namespace fp8lab::plan
