#include "labs/lower/model.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "labs/seeded.h"

namespace fp8lab::lower {

const LabInfo Lower::kInfo = {
    "lower", 11,  "Fewer bits", "Fewer bits", "Which layers can live with four bits, and how would you know?",
    30,      "L6"};

std::span<const table::Experiment<Lower>> Lower::experiments() {
    static const std::array<table::Experiment<Lower>, 5> kExperiments = {
        {{"mix", {"pareto"}, &Lower::mix_figures},
         {"ranges", {"outliers", "contrast", "saturated"}, &Lower::range_figures},
         {"cascade",
          {"cascade", "cost", "margins"},
          &Lower::cascade_figures,
          &Lower::cascade_metrics,
          &Lower::has_cascade},
         {"kv", {"kv_memory", "kv_error"}, &Lower::kv_figures, &Lower::kv_metrics, &Lower::has_kv},
         {"tokens",
          {"tokens", "token_ratio"},
          &Lower::token_figures,
          &Lower::token_metrics,
          &Lower::has_tokens}}};
    return kExperiments;
}

SetupSpec Params::setup() const {
    return {{network, network == "own" ? file : ""}, outlier_ratio, smoothing, contrast};
}

ScalesSpec Params::scales() const {
    if (act_scale != "calibrated" || !both()) return {};
    return {true, batches, margin, percentile};
}

MixSpec Params::mix() const {
    return {.setup = setup(),
            .both = both(),
            .uniform = uniform,
            .w = w,
            .a = a,
            .w_more = w_more,
            .a_more = a_more,
            .probe = probe,
            .scales = scales(),
            .budget = revealed ? budget : kMostBits};
}

RangesSpec Params::ranges() const {
    return {setup(), both(), {act_scale == "calibrated", batches, margin, percentile}};
}

KvCase Params::kv_case() const { return {std::stoi(kv_outlier), std::stoi(kv_sharp), kv_seed}; }

TokensRequest Params::tokens_request() const {
    TokensRequest out{tokens, wide};
    out.wide.layers = token_by == "layers";
    return out;
}

const Cloud* Lower::cloud() const {
    const bool here = params.revealed && params.experiment == "mix" && *mixes;
    return here && (*mixes)->spec == params.cloud() ? mixes->get() : nullptr;
}

MixRequest Lower::mix_request() const {
    MixRequest out{params.mix(), nullptr};
    if (out.spec.budget < kMostBits && *mixes && (*mixes)->spec == params.cloud()) out.cloud = *mixes;
    return out;
}

bool Lower::has_relu() const {
    if (!outcome->setup) return true;  // before the first result
    const TrainedMlp& network = outcome->setup->network;
    return network.activation == Activation::relu && network.layers.size() > 1;
}

void Lower::settle() {
    if (!has_relu()) params.smoothing = "off", params.outlier_ratio = 1;
}

void Lower::take(const Mix& mix) {
    Params& p = params;
    p.uniform = "mix";
    p.budget = kMostBits;
    const std::size_t n = mix.weights.size();
    for (std::size_t l = 0; l < n; ++l) {
        set_format_of_layer(p.w, p.w_more, l, n, mix.weights[l]->id);
        const bool as_w = !p.both() || mix.activations[l] == mix.weights[l];
        set_format_of_layer(p.a, p.a_more, l, n, as_w ? "w" : mix.activations[l]->id);
    }
}

void Lower::choose(std::size_t layer, bool activation, std::string_view format) {
    take(outcome->mix);
    Params& p = params;
    set_format_of_layer(activation ? p.a : p.w, activation ? p.a_more : p.w_more, layer,
                        outcome->mix.weights.size(), format);
}

bool Lower::perform(std::string_view action) {
    if (action != "reveal" && action != "take_best") return false;
    params.revealed = true;
    if (action == "reveal") return true;
    mixes.refresh(params.experiment == "mix", false);
    outcome.refresh(true, false);
    if (const Cloud* const all = cloud())
        if (const auto best = best_under(*all, outcome->own.bits)) take(*best);
    return true;
}

std::vector<Figure> Lower::mix_figures() const { return {pareto_figure(*outcome, cloud())}; }

std::vector<Figure> Lower::range_figures() const {
    const double db = outcome->layers.size() > 1 ? outcome->layers[1].sqnr_db_a : std::nan("");
    return {outliers_figure(*ranges, params.outlier_ratio, db), contrast_figure(*ranges, params.contrast),
            saturated_figure(*ranges)};
}

std::vector<Figure> Lower::cascade_figures() const {
    return {cascade_figure(*cascade, params.tau), cost_figure(*cascade, params.tau),
            margins_figure(*cascade, params.tau)};
}

std::vector<Figure> Lower::kv_figures() const {
    return of_seed(params.kv_seed, {kv_memory_figure(params.kv), kv_error_figure(*kv, params.kv_case())},
                   {"kv_error"});
}

std::vector<Figure> Lower::token_figures() const {
    return {tokens_figure(*tokens), token_ratio_figure(*tokens)};
}

Figure Lower::thumbnail() const {
    Figure figure = pareto_figure(*outcome, nullptr);
    figure.title.clear();
    std::erase_if(figure.series,
                  [](const Series& series) { return std::holds_alternative<TextMark>(series.shape); });
    return figure;
}

std::vector<std::string> Lower::recipes() const {
    const Params& p = params;
    std::vector<std::string> ids;
    if (p.experiment == "cascade") ids = {p.high, p.low};
    if (p.experiment == "tokens") ids = {p.tokens.high, p.tokens.low};
    if (p.experiment == "mix" || p.experiment == "ranges") {
        if (p.uniform != "mix")
            ids = {p.uniform};
        else
            ids.assign(p.w.begin(), p.w.end());
        if (p.uniform == "mix" && p.both()) ids.insert(ids.end(), p.a.begin(), p.a.end());
    }
    if (p.experiment == "mix") ids.push_back(p.probe);
    std::vector<std::string> out;
    for (const std::string& id : ids)
        if (id != "w")
            out.push_back(find_low_format(id, "recipe").recipe);  // "w": as the weights of the layer
    return out;
}

LabEntry entry() { return entry_of<LowerLab>(Lower::kInfo); }

}  // namespace fp8lab::lower
