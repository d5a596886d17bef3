// The run doctor: what is wrong with a run's tensors under a recipe, where, from which step on, and which one change
// treats it. Rules are rows of a table (rules.cpp), tried in their order; the thresholds stand here. They were set on the
// very runs of the tests, so a finding is a reason to look, and its cause is sure only after a run with the change.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/run/replay.h"

namespace fp8lab {

struct Thresholds {
    double lost_at_most = 5;  // %: more than this in a step is where a finding begins
    double mean_lost = 2;     // %: mean over the steps, from which on a tensor is ill
    double spike = 32;        // times the median of the `spike_steps` steps before
    int spike_steps = 32;
    int spike_back = 3;  // steps after which it is back below an eighth of the spike, and below `spike`
    double spike_mean_lost = 0.5;  // %: a spike that costs less is none
    double outlier_binades = 3;    // that the amax moves away from the median magnitude
    double grown_binades = 8;      // that the amax has grown, where there are no counters
    double unseen_spike = 1000;    // times the median, where it is not known what is lost below it
    double saturated_by = 1.3;     // amax x scale above the overflow threshold: a saturation worth a word
    double saturated_steps = 30;   // %: more steps than this saturate so, and three at least
    double headroom_binades = 6;   // that stay free above the amax at all times
    int fixed_steps = 200;         // in which the scale of weights stands still
};

// The kinds of findings. Numbers are those of the failure modes of FP8 training, which are the diagnoses of L16
// (assets/docs/decisions/0006-doctor-and-clinic.md): "3?" for what is only hinted at, none where it is none of them.
enum class FindingKind {
    infinite_scale,   // 6   a tensor of zeros whose scale became infinite
    overflow_nan,     // 2   overflow becomes NaN or Inf under overflow=nonsaturate
    not_fp8,          //     NaN or Inf before any cast
    spike,            // 4   a spike kept in the amax history
    below_window,     // 1   scale 1, values below the format's window
    outlier_channel,  //     the median falls away from the amax
    stale_history,    // 4   the amax has fallen, and the history still keeps the old one
    loses,            //     the cause is not in these statistics
    saturates,        //     values above the format's window in many steps
    all_zero,         // 6   a tensor of zeros
    headroom,         // 9   a margin that is not needed
    fixed_scale,      // 3?  the scale of weights stands still
    resumed           //     the scale is back at 1
};

struct RunFinding {
    FindingKind kind = FindingKind::loses;
    std::string_view number;  // "4"
    std::size_t tensor = 0;   // index in RunLog::tensors
    std::string name;         // of the tensor
    std::int32_t step = 0;    // the first one
    double lost_pct = 0;      // mean over the steps but the first; lower bound
    bool lost_known = true;  // false: what lies below the amax was not counted, so that lost_pct says nothing
    double severity =
        0;              // what findings are ordered by: lost_pct; more for what is not finite, less for hints
    std::string cause;  // "a spike of 4.0e5 times kept in history 64"
    std::string_view treatment;  // "history 16, or most_recent"
};

// The findings, worst first; at most one of the kinds up to `saturates` per tensor. May take long: calls ask_between().
std::vector<RunFinding> findings(const RunLog& log, const Recipe& recipe, const Thresholds& thresholds = {});

// What no log of tensors shows, a phrase each: failure modes 5, 7 and 8; 3 is only hinted at.
std::vector<std::string_view> cannot_be_seen();

// The first loss that is NaN or Inf.
std::optional<LossPoint> first_nonfinite_loss(const RunLog& log);

// What is not known of this log under this recipe, a sentence each: tensors without counters of binades, lost values
// under a recipe of which only an upper bound is known, tensors that were logged in one step only.
std::vector<std::string> not_known(const RunLog& log, const Recipe& recipe);

// Tensors of which only the amax is known under this recipe, not how much becomes 0 below it: there are no counters of
// binades and, where the recipe is not the log's own, no lost shares.
std::size_t without_lost_shares(const RunLog& log, const Recipe& recipe);

// This run under other recipes: unscaled, delayed with history 1024, 64 and 16, current; then mxfp8 from above.
struct UnderRecipe {
    std::string recipe;     // "delayed:history=64"
    int over = 0;           // tensors that lose more than Thresholds::lost_at_most % in the mean
    std::size_t worst = 0;  // index of the tensor that loses most; no meaning in an empty log
    double worst_pct = 0;   // its mean loss, %: lower bound, or upper bound where from_above
    bool from_above = false;
};
std::vector<UnderRecipe> under_recipes(const RunLog& log, const Thresholds& thresholds = {});
// The recipes of that table.
std::vector<std::string> compared_recipes();

// The recipe that a log is judged under where the user names none: its own if that casts to 8 bits, else
// delayed:history=1024, Transformer Engine's default.
Recipe default_recipe(const RunLog& log);

}  // namespace fp8lab
