// The part "training" of L18: mixtures of experts trained under several recipes beside BF16, and what happens to expert 1 where it gets
// no token for some steps. With delayed scaling its scales then come from amaxes of before.
#pragma once

#include <array>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/figure/figure.h"
#include "core/nn/train_spec.h"
#include "labs/table/long.h"

namespace fp8lab::experts {

inline constexpr int kMostSteps = 600, kFewestSteps = 100;
// Recipes that can be trained beside BF16, alone or all together.
inline constexpr std::array kArms = {"delayed", "current", "mxfp8", "nvfp4"};

struct MixtureSpec {
    int steps = kMostSteps, experts = 8, active = 2;
    std::string balance = "bias", starve = "off", empty = "roll";
    int seed = 1;
    bool operator==(const MixtureSpec&) const = default;
    TrainSpec train_spec(const std::string& recipe) const;  // throws usage_error, make_train_spec()
    // First step without a token for expert 1, and the first in which it may have some; equal: none.
    std::array<int, 2> starved() const;
};
struct TrainingSpec {
    MixtureSpec mixture = {};
    std::string arms = "delayed";  // "delayed,current": the first one is what is shown of expert 1
    bool operator==(const TrainingSpec&) const = default;
    // bf16 first, beside whole trainings alone: a gap is of their ends.
    std::vector<std::string> recipes() const;
};

// One training. Expert 1, by steps; its casts are those of two GEMMs in each block.
struct ArmRun {
    std::string recipe;
    std::vector<double> loss = {};
    std::vector<double> rows = {};  // tokens, mean of the blocks
    std::vector<double> dy_db =
        {};  // the smallest SQNR of its dy; NaN: it has no rows in any block, or dy is not cast
    std::string stopped = {};  // why it ended early
    // The first cast of dy after the starved steps: the smallest SQNR of the four, and the largest underflow; NaN: none yet.
    double return_db = std::numeric_limits<double>::quiet_NaN();
    double return_underflow_pct = std::numeric_limits<double>::quiet_NaN();
    int steps() const { return static_cast<int>(loss.size()); }
};
struct Training {
    TrainingSpec spec = {};
    std::vector<ArmRun> arms = {};  // of its recipes; the last one may be under way
    bool is_complete() const;
    const ArmRun* shown() const;  // the first that is not bf16; null: not begun
    // Tail loss against BF16, per cent; NaN: it is not trained, or stopped.
    double gap_pct(const ArmRun& arm) const;
};

class TrainingMaker {
  public:
    Training operator()(const TrainingSpec& spec, const table::Told<Training>& told);

  private:
    MixtureSpec of_;
    std::map<std::string, ArmRun> known_;  // whole ones, of the same mixture
};

std::string recipe_label(const std::string& recipe);
std::string loss_title(const Training& training);
std::string return_title(const Training& training);
Figure loss_figure(const Training& training);
Figure expert_rows_figure(const Training& training);
Figure dy_figure(const Training& training);

}  // namespace fp8lab::experts
