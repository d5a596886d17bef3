#include "labs/serve/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace fp8lab::serve {

using table::Experiment, table::known, table::MetricRow;

const LabInfo Serve::kInfo = {
    "serve",
    17,
    "Serve it",
    "Serve it",
    "Which bits does a trained model keep when it is served, and who pays for the rest?",
    45,
    "L13",
    "",
    "",
    true};

std::optional<AmaxSpec> Params::amax_spec() const {
    if (amax == 1 || !has_amax(scheme, lower == "both")) return std::nullopt;
    return AmaxSpec{common(), method};
}

std::optional<GainsSpec> Params::gains() const {
    if (!takes_inputs(scheme)) return std::nullopt;
    GainsSpec out{common(), scheme};
    out.common.both = false;  // it has both
    return out;
}

Serve::Serve()
    : chosen(
          "methods", [this] { return params.chosen(); },
          [evaluator = std::make_shared<Evaluator>()](const ChosenSpec& spec, const auto&) {
              return chosen_of(spec, *evaluator);
          }),
      stems(
          "methods", [this] { return params.amax_spec() ? std::nullopt : std::optional(params.stems()); },
          [evaluator = std::make_shared<Evaluator>()](const StemsSpec& spec, const auto& told) {
              return stems_of(spec, *evaluator, told);
          }),
      gains(
          "methods", [this] { return params.gains(); },
          [evaluator = std::make_shared<Evaluator>()](const GainsSpec& spec, const auto&) {
              return gains_of(spec, *evaluator);
          }),
      amax(
          "methods", [this] { return params.amax_spec(); },
          [evaluator = std::make_shared<Evaluator>()](const AmaxSpec& spec, const auto& told) {
              return amax_sweep(spec, *evaluator, told);
          }),
      drafts(
          "draft", [this] { return params.draft_spec(); },
          [maker = std::make_shared<DraftMaker>()](const DraftSpec& spec, const auto& told) {
              return (*maker)(spec, told);
          }),
      round(
          "draft", [this] { return params.round_spec(); },
          [maker = std::make_shared<RoundMaker>()](const RoundSpec& spec) { return (*maker)(spec); }),
      rollouts(
          "rollout", [this] { return params.rollout_spec(); },
          [maker = std::make_shared<RolloutMaker>()](const RolloutSpec& spec, const auto& told) {
              return (*maker)(spec, told);
          }),
      qat(
          "qat", [this] { return params.qat_spec(); },
          [maker = std::make_shared<QatMaker>()](const QatSpec& spec, const auto& told) {
              return (*maker)(spec, told);
          }),
      kv(
          "kv", [this] { return params.kv(); },
          [maker = std::make_shared<KvMaker>()](const KvSpec& spec, const auto& told) {
              return (*maker)(spec, told);
          }) {}

std::span<const Experiment<Serve>> Serve::experiments() {
    static const std::array<Experiment<Serve>, 6> kExperiments = {{
        {"methods",
         {"methods", "layers", "amax"},
         &Serve::methods_figures,
         &Serve::methods_metrics,
         &Serve::has_chosen},
        {"draft",
         {"speedup", "acceptance"},
         &Serve::draft_figures,
         &Serve::draft_metrics,
         &Serve::has_drafts},
        {"rollout",
         {"ess", "ratios"},
         &Serve::rollout_figures,
         &Serve::rollout_metrics,
         &Serve::has_rollouts},
        {"qat", {"train_back"}, &Serve::qat_figures, &Serve::qat_metrics, &Serve::has_qat},
        {"kv", {"kv_scale"}, &Serve::kv_figures, &Serve::kv_metrics, &Serve::has_kv},
        {"speed", {"tokens_per_s"}, &Serve::speed_figures, &Serve::speed_metrics},
    }};
    return kExperiments;
}

std::vector<Figure> Serve::methods_figures() const {
    return {methods_figure(*stems, *chosen), layers_figure(*chosen),
            amax_figure(*amax, params.amax, *chosen)};
}

std::vector<MetricRow> Serve::methods_metrics() const {
    constexpr std::size_t kFewestLayers = 4;  // those of the networks of digits: their names are always there
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    const Chosen& c = *chosen;
    const char* const unit = c.classifies ? "nats" : "";
    std::vector<MetricRow> out = {known("bits", c.bits, "bit"),
                                  known("divergence", c.score.divergence, unit),
                                  known("nearest_divergence", c.nearest.divergence, unit),
                                  known("changed", c.classifies ? c.score.changed : kNone),
                                  known("nearest_changed", c.classifies ? c.nearest.changed : kNone),
                                  known("accuracy_pct", c.score.accuracy_pct, "%")};
    for (std::size_t l = 0; l < std::max(kFewestLayers, c.layers.size()); ++l) {
        const LayerErrors* layer = l < c.layers.size() ? &c.layers[l] : nullptr;
        for (const auto& [name, member] : {std::pair{"rel_l2_w", &LayerErrors::w},
                                           {"nearest_rel_l2_w", &LayerErrors::w_nearest},
                                           {"rel_out", &LayerErrors::out},
                                           {"nearest_rel_out", &LayerErrors::out_nearest}})
            out.push_back(known(fmt::format("{}_{}", name, l + 1), layer ? layer->*member : kNone));
    }
    for (const char* id : kSchemes) {
        const auto stem = std::ranges::find(stems->stems, id, [](const Stem& s) { return s.scheme->id; });
        for (const Method method : kStemMethods)
            out.push_back(known(fmt::format("{}.{}", id, to_string(method)),
                                stem == stems->stems.end() ? kNone : stem->of(method)));
    }
    return out;
}

std::vector<MetricRow> Serve::kv_metrics() const {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    const KvRow* own = kv->own();
    const CacheCost cost = own ? own->cost : CacheCost{kNone, kNone, kNone, kNone, kNone, kNone};
    const KvRow* calibrated = kv->row("tensor");
    std::vector<MetricRow> out = {
        known("kv_divergence", cost.divergence, "nats"),
        known("k_divergence", cost.k_divergence, "nats"),
        known("v_divergence", cost.v_divergence, "nats"),
        known("saturated_pct_k", cost.saturated_pct_k, "%"),
        known("largest_k", cost.largest_k),
        known("first_saturated", kv->first_saturated()),
        known("calibrated_divergence", calibrated ? calibrated->cost.divergence : kNone, "nats")};
    const CacheScheme& scheme = find_cache_scheme(params.cache, "cache");
    for (const CacheModel& model : kCacheModels)
        out.push_back(known(model.id == "gqa_8" ? std::string("bytes_per_token_layer")
                                                : fmt::format("bytes_per_token_layer.{}", model.id),
                            cache_bytes_per_token(model.shape, scheme), "B"));
    return out;
}

Figure Serve::thumbnail() const {
    Figure figure = methods_figure(usual_stems(), {});
    figure.title.clear();
    return figure;
}

bool Serve::stale() const {
    if (!problem.empty()) return false;  // it is what is shown
    if (params.experiment == "draft") return drafts.is_old();
    if (params.experiment == "rollout") return rollouts.is_old();
    if (params.experiment == "qat") return qat.is_old();
    if (params.experiment == "kv") return kv.is_old();
    if (params.experiment == "speed") return false;
    return chosen.is_old() || stems.is_old() || gains.is_old() || amax.is_old();
}

std::vector<std::string> Serve::recipes() const {
    const std::string& part = params.experiment;
    const std::string recipe = part == "kv" ? ""
                                            : find_low_format(part == "draft"     ? params.draft
                                                              : part == "rollout" ? params.rollout
                                                                                  : params.scheme,
                                                              "recipe")
                                                  .recipe;
    if (recipe.empty()) return {};
    return {part == "qat" ? fake_recipe(params.scheme) : recipe};
}

LabEntry entry() { return entry_of<ServeLab>(Serve::kInfo); }

}  // namespace fp8lab::serve
