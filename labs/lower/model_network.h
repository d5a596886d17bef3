// What L11 lowers: a trained network with its test rows, and the same with outlier channels, smoothing and contrast.
#pragma once

#include <memory>
#include <string>

#include "core/inference/data.h"
#include "core/inference/lowering.h"
#include "core/inference/score.h"

namespace fp8lab::lower {

struct NetworkSpec {
    std::string network = "digits";  // "digits", "digits-2", "digits-3" (seeds 1 to 3), "teacher", "own"
    std::string file = {};           // own: a checkpoint of train --save, or FILE:TENSOR, one layer
    bool operator==(const NetworkSpec&) const = default;
};

struct Subject {
    TrainedMlp network;
    InferenceData data;
    std::string name = {};  // "digits 64-128-64-32-10, seed 1"
    // Inputs are drawn from N(0, 1), because the real inputs of a user's own weights are not known.
    bool random_inputs = false;
};
// Throws input_error: an own file that cannot be read, is neither a checkpoint nor a matrix, or has more than
// kMostWeights weights.
inline constexpr std::size_t kMostWeights = 20'000'000;
Subject make_subject(const NetworkSpec& spec);

struct SetupSpec {
    NetworkSpec subject = {};
    double outlier_ratio = 1;       // of four channels that enter layer 2
    std::string smoothing = "off";  // "off", or SmoothQuant's alpha: "0.5"
    double contrast = 1;            // multiplies the test inputs
    bool operator==(const SetupSpec&) const = default;
};
// The scales of the layer inputs: from the tensor at hand, or calibrated on training rows.
struct ScalesSpec {
    bool calibrated = false;
    int batches = 4, margin = 0;
    double percentile = 100;
    bool operator==(const ScalesSpec&) const = default;
};
// Empty where they are not calibrated.
StaticScales scales_of(const ScalesSpec& spec, const TrainedMlp& network, const Matrix<float>& train_x);

struct Setup {
    SetupSpec spec;
    std::shared_ptr<const Subject> subject;
    TrainedMlp network;   // with outliers and smoothing
    Matrix<float> x;      // with contrast
    Reference reference;  // of these in FP32
};
// Keeps the subject of `before` where it is the same.
std::shared_ptr<const Setup> make_setup(const SetupSpec& spec, const std::shared_ptr<const Setup>& before);

// The ratio as a float, a power of two where the field's value is close to one: the function then stays exact.
float exact_ratio(double ratio);

}  // namespace fp8lab::lower
