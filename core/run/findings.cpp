#include "core/run/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/run/rules.h"
#include "core/threads/parallel.h"

namespace fp8lab {

namespace {

constexpr std::string_view kUnder[] = {
    "unscaled", "delayed:history=1024", "delayed:history=64", "delayed", "current", "mxfp8"};
constexpr std::size_t kTensorsAtATime = 1;

std::vector<RunFinding> findings_of(const RunLog& log, std::size_t tensor, const Recipe& recipe,
                                    const Thresholds& thresholds) {
    std::vector<RunFinding> out;
    const TensorSeries& series = log.tensors[tensor];
    if (series.points().empty()) return out;
    const TensorEvidence evidence = evidence_of(log, series, recipe, thresholds);
    bool has_one = false;
    for (const RunRule& rule : run_rules()) {
        if (rule.one_of && has_one) continue;
        auto verdict = rule.judge(evidence);
        if (!verdict) continue;
        has_one = has_one || rule.one_of;
        out.push_back({.kind = rule.kind,
                       .number = rule.number,
                       .tensor = tensor,
                       .name = series.name(),
                       .step = evidence.step(verdict->at),
                       .lost_pct = evidence.lost,
                       .lost_known = verdict->lost_known,
                       .severity = verdict->severity,
                       .cause = std::move(verdict->cause),
                       .treatment = verdict->treatment.empty() ? rule.treatment : verdict->treatment});
    }
    return out;
}

UnderRecipe under_recipe(const RunLog& log, const Recipe& recipe, const Thresholds& thresholds) {
    UnderRecipe row;
    row.from_above = recipe.granularity != Granularity::tensor;
    std::vector<double> lost(log.tensors.size());
    parallel_for(lost.size(), kTensorsAtATime, [&](std::size_t begin, std::size_t end) {
        for (std::size_t t = begin; t < end; ++t) {
            const LostBounds mean = replay_tensor(log.tensors[t], recipe).mean_lost();
            lost[t] = row.from_above ? mean.high : mean.low;
        }
    });
    for (std::size_t t = 0; t < lost.size(); ++t) {
        row.over += lost[t] > thresholds.lost_at_most ? 1 : 0;
        if (lost[t] > row.worst_pct) {
            row.worst = t;
            row.worst_pct = lost[t];
        }
    }
    return row;
}

}  // namespace

std::vector<RunFinding> findings(const RunLog& log, const Recipe& recipe, const Thresholds& thresholds) {
    std::vector<std::vector<RunFinding>> by_tensor(log.tensors.size());
    parallel_for(log.tensors.size(), kTensorsAtATime, [&](std::size_t begin, std::size_t end) {
        for (std::size_t t = begin; t < end; ++t) by_tensor[t] = findings_of(log, t, recipe, thresholds);
    });
    std::vector<RunFinding> all;
    for (auto& some : by_tensor) std::ranges::move(some, std::back_inserter(all));
    std::ranges::stable_sort(all, std::ranges::greater{}, &RunFinding::severity);
    return all;
}

std::vector<std::string_view> cannot_be_seen() {
    return {"too few mantissa bits", "a narrow accumulator", "a learning rate that is too high",
            "weights without a master copy, except for a hint"};
}

std::optional<LossPoint> first_nonfinite_loss(const RunLog& log) {
    const auto at =
        std::ranges::find_if(log.losses, [](const LossPoint& point) { return !std::isfinite(point.loss); });
    return at == log.losses.end() ? std::nullopt : std::optional(*at);
}

std::vector<std::string> not_known(const RunLog& log, const Recipe& recipe) {
    std::vector<std::string> out;
    const std::size_t all = log.tensors.size();
    const auto of_all = [&](std::size_t some) {
        return fmt::format("{} of {} tensor{}", some, all, all == 1 ? "" : "s");
    };
    if (const std::size_t some = without_lost_shares(log, recipe); some > 0)
        out.push_back(fmt::format(
            "{} {} no counters of binades: how much of them becomes 0 below the amax is not known",
            of_all(some), some == 1 ? "has" : "have"));
    const auto once = static_cast<std::size_t>(std::ranges::count_if(
        log.tensors, [](const TensorSeries& series) { return series.points().size() == 1; }));
    if (once > 0 && recipe.scale == ScaleSource::delayed)
        out.push_back(
            fmt::format("{} {} logged in one step only: what a delayed scale does to them is not known",
                        of_all(once), once == 1 ? "was" : "were"));
    if (recipe.granularity == Granularity::tensor || all == 0) return out;
    const UnderRecipe row = under_recipe(log, recipe, Thresholds{});
    out.push_back(fmt::format(
        "of recipes with a scale per block or row only an upper bound of what becomes 0 is known: "
        "at most {:.1f} %, of {}",
        row.worst_pct, log.tensors[row.worst].name()));
    return out;
}

std::size_t without_lost_shares(const RunLog& log, const Recipe& recipe) {
    const bool own = is_own_recipe(log, recipe);
    return static_cast<std::size_t>(std::ranges::count_if(log.tensors, [&](const TensorSeries& series) {
        const auto has_share = [](const TensorPoint& point) { return !std::isnan(point.underflow_pct); };
        return !series.has_counters() && !(own && std::ranges::any_of(series.points(), has_share));
    }));
}

std::vector<std::string> compared_recipes() { return {std::begin(kUnder), std::end(kUnder)}; }

std::vector<UnderRecipe> under_recipes(const RunLog& log, const Thresholds& thresholds) {
    std::vector<UnderRecipe> rows;
    for (const std::string_view text : kUnder) {
        rows.push_back(under_recipe(log, parse_recipe(text), thresholds));
        rows.back().recipe = text;
    }
    return rows;
}

Recipe default_recipe(const RunLog& log) {
    if (!log.recipe.empty()) try {
            Recipe own = parse_recipe(log.recipe);
            if (width_bits(*own.fwd) <= 8) return own;
        } catch (const Error&) {  // a recipe that this program does not know
        }
    return parse_recipe("delayed:history=1024");
}

}  // namespace fp8lab
