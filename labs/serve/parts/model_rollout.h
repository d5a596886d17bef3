// The part "rollout" of L17: answers that an engine in fewer bits draws, as a trainer in BF16 weighs them
// (core/inference/serve/rollout.h). One draw of 128 answers varies much, because a few large weights decide: a line is the median
// of kDraws draws.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/figure/figure.h"
#include "core/inference/serve/rollout.h"
#include "labs/serve/model_network.h"
#include "labs/table/long.h"

namespace fp8lab::serve {

inline constexpr int kDraws = 5;        // seeds 1 to 5
inline constexpr int kMostTokens = 56;  // of an answer: 64 less a prompt of 8

struct RolloutEngine {
    std::string format = "e4m3-row";  // of weights and inputs, or "bf16"
    bool fp8_cache = false;           // E4M3 with scale 1
    bool operator==(const RolloutEngine&) const = default;
};
std::string name_of(const RolloutEngine& engine);  // "E4M3 row, FP8 cache"

struct RolloutSpec {
    NetworkSpec network = {.network = "transformer"};
    RolloutEngine engine = {};
    double temperature = 1;
    int answers = 128;
    bool others = true;  // what the figure compares it with
    bool operator==(const RolloutSpec&) const = default;
};

struct RolloutLine {
    RolloutEngine engine = {};
    std::vector<Rollout> draws = {};  // kDraws; fewer in what is told while they are drawn
    int longest() const { return static_cast<int>(draws.front().d.cols); }
    // Per cent of the draws, of the first `length` tokens; weights above `most` are cut. Ascending: the middle one is the median.
    std::vector<double> ess_pct(int length, double most) const;
    double median_ess_pct(int length, double most) const;
    // Of the tokens of all answers: means over the draws.
    double mean_abs_d() const;
    double kl() const;
    double over_2_pct() const;
    // Of the answers of all draws, first `length` tokens: half of the weights are within this factor of 1, up or down.
    double median_ratio(int length) const;
};
struct Rollouts {
    RolloutSpec spec = {};
    std::string network = {}, data = {};
    std::vector<RolloutLine> lines = {};  // the chosen one first; empty: not computed
    // Lengths of an answer that tables tell of: a seventh, a half and all of the longest one; 8, 28, 56.
    std::array<int, 3> lengths() const;
    const RolloutLine* chosen() const { return lines.empty() ? nullptr : &lines.front(); }
    bool is_complete() const { return chosen() && chosen()->draws.size() == kDraws; }  // the chosen one
};

class RolloutMaker {
  public:
    // Throws usage_error: a multilayer perceptron, a scheme for weights only, measure_rollout().
    Rollouts operator()(const RolloutSpec& spec, const table::Told<Rollouts>& told);

  private:
    RolloutSpec of_;  // of what is kept; the engine and `others` do not count
    std::shared_ptr<TokenModel> model_;
    std::map<std::string, RolloutLine> known_;
};

// "off", "2": the largest weight.
double truncation_of(const std::string& truncate);

std::string ess_title(const Rollouts& rollouts, int tokens, const std::string& truncate);
std::string ratios_title(const Rollouts& rollouts);
Figure ess_figure(const Rollouts& rollouts, int tokens, const std::string& truncate);
Figure ratios_figure(const Rollouts& rollouts);

}  // namespace fp8lab::serve
