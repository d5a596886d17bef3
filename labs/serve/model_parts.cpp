// The parts draft, rollout and qat as the table of L17 has them: what they are computed from, their figures and metrics.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "labs/serve/model.h"

namespace fp8lab::serve {

using table::known, table::MetricRow;

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr int kRounds = 1000;
constexpr std::size_t kAlphas = 8;  // positions with a metric of their own

}  // namespace

DraftSpec Params::draft_spec() const {
    return {tokens_spec(), draft, draft_lower == "both", temperature, others};
}
RoundSpec Params::round_spec() const {
    RoundSpec out{draft_spec(), length, round};
    out.draft.others = false;
    return out;
}
RolloutSpec Params::rollout_spec() const {
    return {tokens_spec(), {rollout, rollout_kv == "fp8"}, temperature, answers, others};
}

std::vector<table::Row> part_rows(Params& p) {
    return {
        {toggle({.name = "others",
                 .label = "Compare",
                 .help = "Other drafts, or other engines of a rollout, in the same figure. They take longer "
                         "than the chosen one.",
                 .more = true},
                &p.others),
         "draft rollout"},
        {.field = integer({.name = "round",
                           .label = "Verification",
                           .help = "Which verification the stage shows: another text, other draws."},
                          &p.round, 1, kRounds),
         .of = "draft",
         .shown = false}};
}

bool Serve::perform(std::string_view action) {
    if (action != "round") return false;
    params.round = params.round % kRounds + 1;
    return true;
}

std::vector<Figure> Serve::draft_figures() const {
    return {speedup_figure(*drafts, params.price(), params.length), acceptance_figure(*drafts)};
}

std::vector<MetricRow> Serve::draft_metrics() const {
    const DraftCurve& chosen = *drafts->chosen();
    const DraftRun& run = chosen.run;
    const double cost = params.price().of(chosen.bits);
    const auto length = static_cast<std::size_t>(std::min(params.length, drafts->longest()));
    const std::size_t best = run.best_length(cost);
    std::vector<MetricRow> out = {known("alpha", run.alpha),
                                  known("expected_g", run.expected(length)),
                                  known("speedup", run.speedup(length, cost)),
                                  known("best_length", static_cast<double>(best)),
                                  known("best_speedup", run.speedup(best, cost)),
                                  known("break_even", run.break_even(length)),
                                  known("draft_cost", cost)};
    for (std::size_t k = 0; k < kAlphas; ++k)
        out.push_back(
            known(fmt::format("alpha_{}", k + 1), k < run.longest() ? run.by_position[k] : kUnknown));
    return out;
}

std::vector<Figure> Serve::rollout_figures() const {
    return {ess_figure(*rollouts, params.tokens, params.truncate), ratios_figure(*rollouts)};
}

std::vector<MetricRow> Serve::rollout_metrics() const {
    constexpr double kNoLimit = std::numeric_limits<double>::infinity();
    const RolloutLine& chosen = *rollouts->chosen();
    const int length = std::min(params.tokens, chosen.longest());
    const std::vector<double> draws = chosen.ess_pct(length, kNoLimit);
    return {known("mean_abs_d", chosen.mean_abs_d()),
            known("kl", chosen.kl()),
            known("over_2_pct", chosen.over_2_pct(), "%"),
            known("ess_pct", chosen.median_ess_pct(length, kNoLimit), "%"),
            known("ess_least_pct", draws.front(), "%"),
            known("ess_most_pct", draws.back(), "%"),
            known("ess_truncated_pct", chosen.median_ess_pct(length, truncation_of(params.truncate)), "%")};
}

std::vector<Figure> Serve::qat_figures() const {
    return {train_back_figure(*qat, params.teacher == "teacher")};
}

std::vector<MetricRow> Serve::qat_metrics() const {
    const double labels = qat->labels.median().back(), teacher = qat->teacher.median().back();
    return {known("qat_divergence", params.teacher == "teacher" ? teacher : labels),
            known("qat_labels", labels), known("qat_teacher", teacher), known("qat_nearest", qat->nearest),
            known("qat_gptq", qat->gptq)};
}

}  // namespace fp8lab::serve
