// The mismatch of a rollout: a policy is trained on tokens that an engine in fewer bits has drawn, and computes their
// probabilities itself. d = log p_trainer - log p_rollout of a token; the weight of an answer is w = exp(sum of d), and N
// answers count as (sum w)^2 / sum w^2 of the trainer's own.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/inference/serve/engine.h"

namespace fp8lab {

struct RolloutSettings {
    double temperature = 1;  // of both, above 0
    std::size_t tokens = 56, answers = 128, prompt = 8;
    std::uint64_t seed = 1;
    std::function<void(std::size_t done, std::size_t of)> told = {};  // tokens
};

struct Rollout {
    Matrix<double> d;  // (answers, tokens), nats
    double kl = 0;     // of a token, in nats: sum q (log q - log p), q of the rollout, mean over all

    double mean_abs_d() const;
    double over_2_pct() const;  // tokens whose ratio exp(d) is above 2
    // Of the first `length` tokens of the answers; weights above `most` are cut to it: +Inf, none is.
    double ess_pct(std::size_t length, double most) const;
    std::vector<double> ess_pct_by_length() const;  // of 1, 2, ... tokens, no weight cut
};
// 100 (sum w)^2 / (N sum w^2), w = min(exp(log_w), most).
double ess_pct(std::span<const double> log_w, double most);

// Prompts of held-out tokens; the rollout draws each next one. Both engines read the same tokens through the same code, each with a
// cache of its own, so that equal engines give d = 0 to the bit. Throws usage_error: temperature 0 or less, no answers,
// prompt and tokens longer than the context.
Rollout measure_rollout(Engine& rollout, Engine& trainer, const RolloutSettings& settings);

}  // namespace fp8lab
