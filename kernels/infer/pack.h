// Weights of a trained transformer as the decode kernel reads them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/backend/token_engine.h"
#include "kernels/infer/decode.h"

namespace fp8lab::cuda {

// The bytes of a matrix, tiles * blocks * kDecodeBlockBytes of them, and the scale_inv of its rows. Codes and scales are those of
// lowered_weights() of core/inference: code = E4M3(w * scale), scale = 448 / amax of the tensor or of the row, scale_inv = 1 /
// scale. BF16 has scales of 1.
struct PackedMatrix {
    std::vector<std::uint8_t> bytes;
    std::vector<float> scales;
};
// w (rows, cols) as core has it. gate_up: (2 ffn, cols), all gates first; row 2 j of the result is gate j, 2 j + 1 is up j.
PackedMatrix packed(const DecodeMatrix& m, std::span<const float> w, ServedWeights format,
                    bool gate_up = false);

}  // namespace fp8lab::cuda
