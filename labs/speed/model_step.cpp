// One training step, and Amdahl's law on it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "labs/speed/model_outcome.h"

namespace fp8lab::speed {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
// Parts that add up to less or more of the step than this run side by side, or some are missing.
constexpr double kLeastParts = 0.9, kMostParts = 1.15;

StepBar bar_of(const RecordedArm& arm) {
    StepBar out{.recipe = arm.recipe, .median_ms = arm.median_ms, .q1_ms = arm.q1_ms, .q3_ms = arm.q3_ms};
    for (const auto& [name, ms] : arm.parts_ms) {
        // "wgrad + optimiser": small networks compute the gradient inside the update.
        double& part = name == "GEMM"                                ? out.gemm
                       : name == "casts"                             ? out.casts
                       : name.find("optimiser") != std::string::npos ? out.optimizer
                                                                     : out.rest;
        part += ms;
    }
    return out;
}

bool has(const RecordedStep& step, const std::string& recipe) {
    const RecordedArm *bf16 = step.find("bf16"), *fp8 = step.find(recipe);
    return bf16 && fp8 && !bf16->parts_ms.empty() && !fp8->parts_ms.empty();
}

double distance(const RecordedStep& step, const Params& params) {
    const auto apart = [](double a, double b) { return std::abs(std::log(a / b)); };
    return apart(step.layers.at(0), params.k) + apart(step.layers.at(1), params.n) +
           apart(step.batch, params.m);
}

// K-N-K.
bool is_layer(const RecordedStep& step) {
    return step.layers.size() == 3 && step.layers.front() == step.layers.back();
}

}  // namespace

StepOutcome step_of(const Params& params, const Source& source) {
    StepOutcome out;
    out.speedup = out.speedup_q1 = out.speedup_q3 = out.share = out.ratio = out.amdahl = out.amdahl_casts =
        out.error_pct = out.ceiling = out.parts_over_step = kUnknown;
    for (const RecordedStep& step : source.steps()) {
        // Both arms keep FP32 master weights: else the update is another one.
        if (!is_layer(step) || step.state != "fp32" || !has(step, params.recipe)) continue;
        if (distance(step, params) == 0) out.found = &step;
        if (!out.nearest || distance(step, params) < distance(*out.nearest, params)) out.nearest = &step;
    }
    if (!out.found || params.off() || params.groups > 1 || params.data == "zeros") {
        out.found = nullptr;
        return out;
    }
    const StepBar& bf16 = out.bf16 = bar_of(*out.found->find("bf16"));
    const StepBar& fp8 = out.fp8 = bar_of(*out.found->find(params.recipe));
    out.speedup = bf16.median_ms / fp8.median_ms;
    if (bf16.q1_ms > 0 && fp8.q1_ms > 0) {
        out.speedup_q1 = bf16.q1_ms / fp8.q3_ms;
        out.speedup_q3 = bf16.q3_ms / fp8.q1_ms;
    }
    const double of_bf16 = bf16.sum() / bf16.median_ms, of_fp8 = fp8.sum() / fp8.median_ms;
    out.parts_over_step = std::abs(std::log(of_bf16)) >= std::abs(std::log(of_fp8)) ? of_bf16 : of_fp8;
    out.applies = out.parts_over_step >= kLeastParts && out.parts_over_step <= kMostParts;
    out.share = bf16.gemm / bf16.median_ms;
    out.ratio = bf16.gemm / fp8.gemm;
    if (!out.applies) return out;
    out.amdahl = 1 / (1 - out.share + out.share / out.ratio);
    out.amdahl_casts = bf16.median_ms / (bf16.median_ms - bf16.gemm - bf16.casts + fp8.gemm + fp8.casts);
    out.error_pct = 100 * (out.amdahl / out.speedup - 1);
    out.ceiling = 1 / (1 - out.share);
    return out;
}

}  // namespace fp8lab::speed
