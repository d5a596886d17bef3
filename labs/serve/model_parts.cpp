// The parts draft, rollout, qat and speed as the table of L17 has them: what they are computed from, their figures and metrics.
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

std::vector<table::Row> speed_rows(Params& p) {
    std::vector<Choice> cards, weights, batches;
    for (const Recording& recording : shipped()->recordings)
        cards.push_back({recording.id, short_gpu_name(recording.gpu)});
    if (cards.empty()) cards.push_back({p.card, "none"});
    for (const ServedWeights w : kSpeedWeights)
        weights.push_back({std::string(info_of(w).name), std::string(info_of(w).label)});
    for (int batch = 1; batch <= kMostSequences; batch *= 2)
        batches.push_back({std::to_string(batch), std::to_string(batch)});
    const std::string_view of = "speed";
    return {
        {choice({.name = "card", .label = "GPU", .help = "Whose recording is shown."}, &p.card,
                std::move(cards)),
         of},
        {choice({.name = "weights",
                 .label = "Weights",
                 .te_name = "vLLM: quantization",
                 .help = "Weights of the linear layers, and what they are multiplied with. E4M3 has a scale "
                         "for each row. Inputs in BF16 were measured up to batch 8."},
                &p.weights, std::move(weights)),
         of},
        {choice({.name = "served_kv",
                 .label = "Cache in",
                 .te_name = "vLLM: kv_cache_dtype",
                 .help = "Keys and values of the 2048 positions of each sequence."},
                &p.served_kv, {{"bf16", "BF16"}, {"e4m3", "E4M3"}}),
         of},
        {choice(
             {.name = "batch", .label = "Batch", .help = "Sequences that get their next token in one pass."},
             &p.batch, std::move(batches)),
         of}};
}

std::vector<MetricRow> Serve::speed_metrics() const {
    const Speeds speeds = speeds_of(params.speed_spec());
    const RecordedInfer* const run = speeds.chosen();
    const auto of_run = [&](auto value) { return run ? value(*run) : kUnknown; };
    return {
        known("tokens_per_s", of_run([](const RecordedInfer& r) { return r.tokens_per_s(); })),
        known("us_per_layer", of_run([](const RecordedInfer& r) { return 1e3 * r.median_ms / r.of.layers; }),
              "us"),
        known("gain", speeds.gain(speeds.spec.weights, speeds.spec.batch), "×"),
        known("over_floor", of_run([](const RecordedInfer& r) { return r.median_ms / r.floor_ms(); }), "×"),
        known("cache_share_pct", of_run(cache_share_pct), "%")};
}

Provenance Serve::provenance() const {
    return params.experiment == "speed" ? Provenance::recorded : Provenance::cpu_emulated;
}

std::string Serve::device() const {
    if (params.experiment != "speed") return {};
    const Speeds speeds = speeds_of(params.speed_spec());
    if (!speeds.recording) return {};
    return fmt::format("{}, {}", speeds.recording->gpu,
                       speeds.runs.empty() ? speeds.recording->date : speeds.runs.front()->date);
}

std::string tokens_words(int asked, int longest) {
    const int length = std::min(asked, longest);
    return fmt::format("{} token{}{}", length, length == 1 ? "" : "s",
                       asked > longest ? ", the most that the context leaves" : "");
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
    const auto run = [this]() -> const DraftRun& { return drafts->chosen()->run; };
    const auto cost = [this] { return params.price().of(drafts->chosen()->bits); };
    const auto length = [this] {
        return static_cast<std::size_t>(std::min(params.length, drafts->longest()));
    };
    std::vector<MetricRow> out = {
        {"alpha", "", [=] { return run().alpha; }},
        {"alpha_pct", "%", [=] { return 100 * run().alpha; }},
        {"expected_g", "", [=] { return run().expected(length()); }},
        {"speedup", "×", [=] { return run().speedup(length(), cost()); }},
        {"best_length", "", [=] { return static_cast<double>(run().best_length(cost())); }},
        {"best_speedup", "×", [=] { return run().speedup(run().best_length(cost()), cost()); }},
        {"break_even", "passes", [=] { return run().break_even(length()); }},
        {"draft_cost", "passes", cost}};
    for (std::size_t k = 0; k < kAlphas; ++k)
        out.push_back({fmt::format("alpha_{}", k + 1), "",
                       [=] { return k < run().longest() ? run().by_position[k] : kUnknown; }});
    return out;
}

std::vector<Figure> Serve::rollout_figures() const {
    return {ess_figure(*rollouts, params.tokens, params.truncate), ratios_figure(*rollouts)};
}

std::vector<MetricRow> Serve::rollout_metrics() const {
    const auto line = [this]() -> const RolloutLine& { return *rollouts->chosen(); };
    const auto draws = [=, this] {
        return line().ess_pct(std::min(params.tokens, line().longest()),
                              std::numeric_limits<double>::infinity());
    };
    return {{"mean_abs_d", "", [=] { return line().mean_abs_d(); }},
            {"kl", "nats", [=] { return line().kl(); }},
            {"over_2_pct", "%", [=] { return line().over_2_pct(); }},
            {"median_ratio", "",
             [=, this] { return line().median_ratio(std::min(params.tokens, line().longest())); }},
            {"ess_pct", "%", [=] { return draws().at(draws().size() / 2); }},
            {"ess_least_pct", "%", [=] { return draws().front(); }},
            {"ess_most_pct", "%", [=] { return draws().back(); }},
            {"ess_truncated_pct", "%", [=, this] {
                 return line().median_ess_pct(std::min(params.tokens, line().longest()),
                                              truncation_of(params.truncate));
             }}};
}

std::vector<Figure> Serve::qat_figures() const {
    return {train_back_figure(*qat, params.teacher == "teacher")};
}

std::vector<MetricRow> Serve::qat_metrics() const {
    const auto last = [this](bool with_teacher) { return qat->of(with_teacher).median().back(); };
    return {{"qat_divergence", "nats", [=, this] { return last(params.teacher == "teacher"); }},
            {"qat_labels", "nats", [=] { return last(false); }},
            {"qat_teacher", "nats", [=] { return last(true); }},
            {"qat_nearest", "nats", [this] { return qat->nearest; }},
            {"qat_gptq", "nats", [this] { return qat->gptq; }}};
}

}  // namespace fp8lab::serve
