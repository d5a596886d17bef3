// Inference at low precision: y = Q_a(x) Q_w(w)^T + b in FP32, layer by layer, each operand cast as its format says.
// Blocks run along K.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/inference/format.h"
#include "core/inference/network.h"
#include "core/stats/tensor_stats.h"

namespace fp8lab {

// A linear layer as bits are counted: its weights are (out, in).
struct LayerSize {
    std::string name;  // "2", "1.qkv"
    std::size_t out = 0, in = 0;
};
std::vector<LayerSize> layer_sizes(const TrainedMlp& network);

// A format per layer for the weights and for the input of the layer.
struct Mix {
    std::vector<const LowFormat*> weights, activations;
    bool operator==(const Mix&) const = default;
};
// All layers in one format; with `activations` false their inputs stay in BF16.
Mix uniform_mix(std::size_t layers, const LowFormat& format, bool activations = true);
// All layers in FP32 but one (counted from 0).
Mix single_mix(std::size_t layers, std::size_t layer, const LowFormat& format, bool activations = true);

// Calibrated ("static") scales of the layer inputs: computed from amaxes that were measured before, one per layer
// (calibration.h), and divided by 2^margin. Used where the format has a scale per tensor; what is larger saturates.
// Empty: dynamic scales, from the tensor at hand.
struct StaticScales {
    std::vector<float> amaxes;
    int margin = 0;
    float amax(std::size_t layer) const;  // that the scale of a layer (from 0) is of; 0: dynamic
    bool operator==(const StaticScales&) const = default;
};

// The casts of both operands of a layer; stats.sqnr_db() is +Inf where nothing was lost.
struct LayerLoss {
    CastStats w, a;
    double rel_out = std::numeric_limits<double>::quiet_NaN();  // of a method (methods/method.h)
};

struct Lowered {
    Matrix<float> y;                // (rows, outputs)
    std::vector<LayerLoss> layers;  // empty unless with_losses
};
Lowered run_lowered(const TrainedMlp& network, const Matrix<float>& x, const Mix& mix,
                    const StaticScales& scales = {}, bool with_losses = false);

// Casts one operand as run_lowered() does.
Matrix<float> lowered_weights(const Matrix<float>& w, const LowFormat& format, CastStats* stats = nullptr);
// Of weights that were lowered in another way than lowered_weights() does; none of them counts as saturated.
CastStats measure_weights(const Matrix<float>& w, const Matrix<float>& lowered);
Matrix<float> lowered_input(const Matrix<float>& x, const LowFormat& format, float static_amax = 0,
                            CastStats* stats = nullptr);

// Mean bits per weight, scales included; and the bytes of all weights.
double bits_per_weight(std::span<const LayerSize> layers, const Mix& mix);
double weight_bytes(std::span<const LayerSize> layers, const Mix& mix);
double bits_per_weight(const TrainedMlp& network, const Mix& mix);
double weight_bytes(const TrainedMlp& network, const Mix& mix);

}  // namespace fp8lab
