// A transformer with a rotated residual stream (QuaRot, arXiv 2404.00456, its offline part): the same function, other values.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/inference/token_model.h"

namespace fp8lab {

// With R a random Hadamard matrix of the model's width, H Hadamard blocks of a head's width, g the gain of the norm that a
// layer reads: embedding E R; qkv (W g) R, its rows of V H^T W per head; out R^T (W H); gate_up (W g) R; down R^T W;
// head (W g) R; gains 1. The logits are those of `model` up to the rounding of FP32.
struct RotatedModel {
    std::unique_ptr<Model<float>> model;  // embedding and gains; its weights are not used:
    std::vector<Matrix<float>>
        weights;  // of each layer of TokenModel::layers(), which its casts hand to the GEMMs
};
// Throws usage_error: `model` is no transformer.
RotatedModel rotated_model(TokenModel& model, std::uint64_t seed);

}  // namespace fp8lab
