// What the verb infer works on.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/files/progress_line.h"
#include "core/inference/calibration.h"
#include "core/inference/data.h"
#include "core/inference/lowering.h"
#include "core/inference/methods/method.h"
#include "core/inference/score.h"

namespace fp8lab::cli {

struct InferOptions {
    std::string file, data, train, weights, activations, cascade;
    int calibrate = 0, margin = 0;
    double percentile = 100;
    std::optional<double> smooth;
    std::string against;  // the network whose outputs in FP32 are the reference; empty: the file's own
    std::string method;   // empty: none was named
    std::string order = "given";  // of GPTQ's columns
    MethodOptions how;
    bool all_mixes = false, greedy = false, json = false, csv = false;
    std::string mixed_tokens, important = "attention";  // "mxfp8,nvfp4"; empty: not asked for
    double share = 0.25;                                // of the tokens
    std::uint64_t seed = 1;                             // of the tokens at random
    bool by_layer = false;
    Calibration calibration(ProgressLine& progress) const {
        return {static_cast<std::size_t>(calibrate), percentile, [this, &progress](std::size_t done) {
                    if (progress.due())
                        progress.at(fmt::format("infer: calibration, {} of {} batches", done, calibrate));
                }};
    }
};

struct CascadeNames {
    const LowFormat *low = nullptr, *high = nullptr;
    double tau = 0;
};

// A multilayer perceptron or a model of tokens, with its test rows, when everything that was named has been read.
struct InferJob {
    std::string network, data;      // "64-128-64-32-10", "449 test digits"
    std::vector<LayerSize> layers;  // in the order of the forward pass
    Mix mix;
    bool both = false;                                             // activations are lowered too
    std::function<Lowered(const Mix& mix, bool with_losses)> run;  // of all test rows
    Reference reference;
    std::optional<CascadeNames> cascade;
    std::optional<TrainedMlp> mlp = {};  // for --all-mixes
    Matrix<float> mlp_rows = {};         // its test rows
};
// "a,b" in its parts.
std::vector<std::string> parts_of(const std::string& text);
// Throws usage_error and input_error: what cannot be read, or does not fit the network.
InferJob prepare_infer(const InferOptions& options, ProgressLine& progress);

}  // namespace fp8lab::cli
