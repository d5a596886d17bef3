// What a recipe's scales would have done to a run that was logged: the scale of every step, whether it saturates, and
// between which bounds the share lies that becomes 0. Delayed scaling is core/scaling/delayed.h, the code of the trainers.
//
// What becomes 0: |x| scale <= half of the format's smallest value (2^-10 in E4M3, 2^-17 in E5M2). Where the amax lies
// there, everything; else binade counters give bounds: the binades wholly below it, and these with the one that it cuts.
// Without counters only 0, everything, or "not known" (0 to 100) can be said.
#pragma once

#include <span>
#include <vector>

#include "core/run/run_log.h"
#include "core/scaling/recipe.h"

namespace fp8lab {

struct LostBounds {
    double low = 0, high = 0;  // percent of the non-zero elements
};
// Of one tensor in one step under this scale.
LostBounds lost_bounds(const TensorSeries& series, const TensorPoint& point, const FormatInfo& format,
                       float scale);

struct ReplayStep {
    std::int32_t step;
    float scale;     // that the cast of this step uses
    float over;      // amax x scale / overflow threshold of the format (464 in E4M3, 61440 in E5M2)
    bool saturates;  // saturation changes the amax
    LostBounds lost;
};

struct Replay {
    const FormatInfo* format = nullptr;  // of this tensor's class
    // The scales and, where logged, the lost shares are those of the log, not computed.
    bool observed = false;
    // Block and row recipes: their scales are not in a log of whole tensors, but each is at least that of the whole
    // tensor. The steps have the tensor's scale; of `lost` only `high` says something, and low is 0.
    bool from_above = false;
    std::vector<ReplayStep> steps;  // as TensorSeries::points()

    // Over all steps but the first, which every delayed recipe casts with scale 1.
    LostBounds mean_lost() const;
    int saturated() const;    // steps
    int mostly_lost() const;  // steps in which at least half becomes 0 (low)
};

// The run's own recipe: the log says no recipe, or one that casts alike. Then its scales and lost shares are taken as
// logged, where they are.
bool is_own_recipe(const RunLog& log, const Recipe& recipe);
// Formats, scale source, history, algo, margin and interval are the recipe's. A format of more than 8 bits loses nothing.
Replay replay_tensor(const TensorSeries& series, const Recipe& recipe, bool own_recipe = false);

// The table of histories: this tensor under max with 1, 4, 16, 64, 256, 1024 slots, then under most_recent.
struct HistoryRow {
    AmaxAlgo algo;
    int history;
    int saturated;  // steps but the first
    LostBounds lost;
    int mostly_lost;
};
std::vector<HistoryRow> histories(const TensorSeries& series, const Recipe& recipe);

}  // namespace fp8lab
