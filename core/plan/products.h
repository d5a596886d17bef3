// The products of a training step of a published model, with times from the grid of a recorded GPU (core/backend/gemm_grid.h).
//
// A linear layer w (out, in) with M tokens has three: fprop M x out x in, dgrad M x in x out, wgrad out x in x M. An expert has
// M = tokens x chosen / experts rows, as if the router shared them out evenly; with fewer tokens than experts some have none. M
// is padded to 16, which FP8 needs, that of an expert under block128 to 128.
//
// The time of a product is its FLOP at the rate of the nearest recorded layer, where the distance is
// |log2(M / M')| + |log2(out in / out' in')|. Held against the 20 recorded arms of `bench blocks`, the milliseconds are off by
// up to 22 %: the GPU's clock falls under its power limit. The ratio of the times, FP8 to BF16, is off by at most 7.7 % at
// d 4096 and 11.4 % at d 768; ratio_error() says 8 and 12 %. Blocks measured for this alone (one H100, CUDA 13.0, 2026-11-26,
// `bench blocks --shape D,...`, delayed, current, rowwise, block128, d 1024 to 16384, 20 arms): at most 6.7 %.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/backend/recording.h"
#include "core/plan/model_size.h"

namespace fp8lab::plan {

inline constexpr int kMostTokens = 1 << 24;  // of a step

struct StepSize {
    int batch = 1, tokens = 1;  // sequences, and tokens of each
    std::string recipe = {};    // one of grid_recipes()
};

struct StepProduct {
    std::string linear = {};                 // Linear::name
    std::string_view product = {};           // fprop, dgrad, wgrad
    double m = 0, n = 0, k = 0;              // of this product, contraction last
    double count = 0;                        // launches in a step: layers x experts
    double bf16_ms = 0, fp8_ms = 0;          // of one launch
    int near_m = 0, near_n = 0, near_k = 0;  // the recorded layer
    bool far = false;                        // its M or its weight's size is more than a factor 2 away

    double speedup() const { return bf16_ms / fp8_ms; }
};

// The other parts of a step, from recorded blocks of about this size.
struct StepParts {
    const RecordedBlocks* blocks = nullptr;
    double gemm_share = 0;  // of the GEMMs in the time of its BF16 arm
    double speedup = 0;     // of the step, with the ratio of this model's products
};

struct StepProducts {
    std::vector<StepProduct> products = {};
    double bf16_ms = 0, fp8_ms = 0;  // sums over the step
    double far_share = 0;  // of the time in BF16 that products take which are far from recorded ones
    double error = 0;      // of ratio(): 0.08 is 8 %
    std::vector<StepParts> parts =
        {};  // none: no blocks with this recipe were recorded within a factor 2 of d and M, or it has experts
    double ratio() const { return fp8_ms / bf16_ms; }
    double speedup() const { return 1 / ratio(); }
    double least_speedup() const { return speedup() / (1 + error); }
    double most_speedup() const { return speedup() / (1 - error); }
};

// Above this share the error is not told: it was not tested so far away.
inline constexpr double kMostFar = 0.1;
double ratio_error(int hidden);

// Throws usage_error: the recipe is none of grid_recipes(), batch or tokens are below 1 or give more than 2^24 tokens, the
// recording has no grid. Throws input_error(where), with the field of the config: a weight whose sizes are no multiples of
// 16, which FP8 GEMMs need. `where` names the model's config.
StepProducts step_products(const ModelSize& model, const StepSize& step, const Recording& gpu,
                           const std::string& where = "config.json");

}  // namespace fp8lab::plan
