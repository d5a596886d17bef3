// Speculative decoding: a cheap draft proposes tokens, the target verifies them in one pass (Leviathan et al., arXiv
// 2211.17192; Chen et al., arXiv 2302.01318). A proposed token is accepted with probability min(1, p / q), p of the
// target, q of the draft; instead of the first one that is refused a token is drawn from max(p - q, 0), and behind the
// last of all accepted ones one from p. So the text has the target's distribution, whatever the draft.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/rng.h"
#include "core/inference/serve/engine.h"

namespace fp8lab {

struct DraftVerdict {
    std::size_t accepted = 0;  // of the proposed tokens
    int next = 0;              // the token behind them
};
// q (proposed, vocabulary): of which proposed[i] was drawn; p (proposed + 1, vocabulary). Reads one number of the stream
// per token that is tried, and one for the next.
DraftVerdict verify(std::span<const int> proposed, const Matrix<double>& q, const Matrix<double>& p,
                    Rng& rng);

struct DraftSettings {
    double temperature = 1;  // of both
    std::size_t sequences = 512;
    std::uint64_t seed = 1;
    std::function<void(std::size_t done, std::size_t of)> told = {};  // tokens
};

// What a draft is worth, from one round per sequence: a prompt of 8 held-out tokens, text of the target up to 44 tokens,
// then 16 tokens of the draft, verified. (Of a context of 64; others in proportion.) No sequence is longer than the
// context.
struct DraftRun {
    std::size_t sequences = 0;
    // The mean over the sequences of sum min(p, q) for the first token: the share that is accepted.
    double alpha = 0;
    // Entry k: the share of rounds that accept the first k + 1 tokens.
    std::vector<double> accepted;
    // Entry k: acceptance at this position among the rounds that reach it, and their number; NaN where none does.
    std::vector<double> by_position;
    std::vector<std::size_t> reached;

    std::size_t longest() const { return accepted.size(); }
    // Tokens per verification with `length` proposed ones: 1 + the sum of `accepted` up to there.
    double expected(std::size_t length) const;
    // Against the target alone: expected / (length cost + 1), where a token of the draft costs `cost` passes of the target
    // and a verification one pass. What is not counted: the cache's bytes, launches, the draft's memory.
    double speedup(std::size_t length, double cost) const;
    std::size_t best_length(double cost) const;   // 1 to longest()
    double break_even(std::size_t length) const;  // the cost at which the speed-up is 1
};
// The most tokens that a draft proposes at once.
constexpr std::size_t longest_draft(std::size_t context) {
    constexpr std::size_t kMost = 16;
    return context / 4 < kMost ? context / 4 : kMost;
}
// Both of the same model. Throws usage_error: temperature below 0; Error{failed} where there is not the memory.
DraftRun measure_draft(Engine& target, Engine& draft, const DraftSettings& settings);

}  // namespace fp8lab
