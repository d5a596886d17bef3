// The rules of the run doctor: a part of findings.h.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/run/findings.h"

namespace fp8lab {

// What the rules look at: one tensor, replayed.
struct TensorEvidence {
    const RunLog& log;
    const TensorSeries& series;
    const Recipe& recipe;
    const Thresholds& thresholds;
    Replay replay;
    std::vector<float> amax;   // per step
    std::vector<float> ratio;  // amax over the median of the steps before; NaN in the first ones
    double lost = 0;           // mean, %
    bool own = false;          // the log is of this recipe

    std::size_t size() const { return amax.size(); }
    std::int32_t step(std::size_t i) const { return replay.steps[i].step; }
};
// The tensor needs a step. Of one that has no second, a delayed scale is not known: it loses nothing then.
TensorEvidence evidence_of(const RunLog& log, const TensorSeries& series, const Recipe& recipe,
                           const Thresholds& thresholds);

// What a rule says where it holds.
struct RuleVerdict {
    std::size_t at;  // index of the step
    std::string cause;
    double severity;
    std::string_view treatment = {};  // empty: the rule's
    bool lost_known = true;           // RunFinding::lost_known
};

struct RunRule {
    FindingKind kind;
    std::string_view name;  // "A spike kept in the history"
    std::string_view number, treatment;
    std::string_view when;  // it holds, where {spike} is Thresholds::spike
    bool one_of;            // of these at most the first that holds is said of a tensor
    std::optional<RuleVerdict> (*judge)(const TensorEvidence& evidence);
};
std::span<const RunRule> run_rules();  // in the order in which they are tried
// A sentence: when the rule holds.
std::string condition_of(const RunRule& rule, const Thresholds& thresholds = {});

}  // namespace fp8lab
