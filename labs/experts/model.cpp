#include "labs/experts/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "labs/seeded.h"

namespace fp8lab::experts {

using table::Experiment, table::MetricRow;

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kBlocks = 2;  // of the shipped models

}  // namespace

const LabInfo Mixture::kInfo = {
    "experts", 18,    "Experts", "Experts", "Who reads this token, and do fewer bits change the choice?",
    35,        "L13", "",        "",        true};

Mixture::Mixture()
    : routed(
          "routing", [this] { return params.routed_spec(); },
          [maker = std::make_shared<RoutingMaker>()](const RoutedSpec& spec) { return (*maker)(spec); }),
      pairs(
          "routing", [this] { return params.pair(); },
          [maker = std::make_shared<PairsMaker>()](const Pair& chosen, const auto& told) {
              return (*maker)(chosen, told);
          }),
      groups(
          "groups", [this] { return params.groups_spec(); },
          [maker = std::make_shared<GroupsMaker>()](const GroupsSpec& spec) { return (*maker)(spec); }),
      hops(
          "hop", [this] { return params.hop_spec(); },
          [maker = std::make_shared<HopMaker>()](const HopSpec& spec) { return (*maker)(spec); }),
      training(
          "training", [this] { return params.training_spec(); },
          [maker = std::make_shared<TrainingMaker>()](const TrainingSpec& spec, const auto& told) {
              return (*maker)(spec, told);
          }) {}

std::span<const Experiment<Mixture>> Mixture::experiments() {
    static const std::array<Experiment<Mixture>, 4> kExperiments = {{
        {"routing",
         {"changed", "margin"},
         &Mixture::routing_figures,
         &Mixture::routing_metrics,
         &Mixture::has_routed},
        {"groups",
         {"rows", "time"},
         &Mixture::groups_figures,
         &Mixture::groups_metrics,
         &Mixture::has_groups},
        {"hop", {"hop"}, &Mixture::hop_figures, &Mixture::hop_metrics, &Mixture::has_hops},
        {"training",
         {"loss", "expert_rows", "dy_sqnr"},
         &Mixture::training_figures,
         &Mixture::training_metrics,
         &Mixture::has_training},
    }};
    return kExperiments;
}

// An expert cannot be starved where every token goes to all.
void Mixture::settle() {
    problem.clear();
    params.active = std::min(params.active, params.starve == "off" ? params.experts : params.experts - 1);
}

std::vector<std::string> Mixture::recipes() const {
    if (params.experiment == "routing") return {routed_recipe(params.layers_in, params.router)};
    if (params.experiment == "hop") return {params.gemm, params.send, params.back};
    if (params.experiment == "training") return params.training_spec().recipes();
    return {};
}

std::vector<Figure> Mixture::routing_figures() const {
    return of_seed(params.seed, {changed_figure(*pairs, *routed), margin_figure(*routed)}, {"margin"});
}

std::vector<Figure> Mixture::groups_figures() const {
    return of_seed(params.seed, {rows_figure(*groups, params.padding()), time_figure(times_of(params.card))},
                   {"rows"});
}

std::vector<Figure> Mixture::hop_figures() const { return of_seed(params.seed, {hop_figure(*hops)}); }

std::vector<Figure> Mixture::training_figures() const {
    return of_seed(params.seed, {loss_figure(*training), expert_rows_figure(*training), dy_figure(*training)},
                   {"loss", "dy_sqnr"});
}

std::vector<MetricRow> Mixture::routing_metrics() const {
    const auto change = [this]() -> const RoutingChange& { return routed->change; };
    std::vector<MetricRow> out = {
        {"changed_pct", "%", [=] { return change().changed_pct(); }},
        {"divergence", "nats", [=] { return change().divergence; }},
        {"divergence_kept", "nats", [=] { return change().divergence_kept; }},
        {"choice_share_pct", "%",
         [=, this] { return routed->is_reference() ? kUnknown : change().choice_share_pct(); }},
        {"margin_below_1_100_pct", "%", [this] { return routed->margin_below_1_100_pct; }},
        {"moved_margin_max", "", [this] { return routed->margins.largest_moved; }}};
    for (std::size_t b = 0; b < kBlocks; ++b)
        out.push_back(
            {fmt::format("changed_pct.{}", b + 1), "%", [=] { return change().changed_pct_blocks.at(b); }});
    return out;
}

std::vector<MetricRow> Mixture::groups_metrics() const {
    const auto shape = [this] { return groups->shape(params.padding()); };
    const auto gemms = times_of(params.card).gemms;
    std::vector<MetricRow> out = {{"zeros_pct", "%", [=] { return shape().zeros_pct; }},
                                  {"empty_pct", "%", [=] { return shape().empty_pct; }},
                                  {"largest_over_mean", "×", [=] { return shape().largest_over_mean; }}};
    for (const char* product : {"fprop", "dgrad", "wgrad"})
        out.push_back({fmt::format("{}.speedup", product), "×",
                       [=] { return gemms ? gemms->speedup(kManyGroups, product) : kUnknown; }});
    for (const char* product : {"fprop", "wgrad"})
        for (const char* kind : {"fp8", "bf16"})
            out.push_back(
                {fmt::format("ridge_rows.{}{}", product, std::string_view(kind) == "bf16" ? ".bf16" : ""),
                 "rows", [=] { return gemms ? gemms->ridge_rows(product, kind) : kUnknown; }});
    return out;
}

std::vector<MetricRow> Mixture::hop_metrics() const {
    std::vector<MetricRow> out = {{"hop_added_pct", "%", [this] { return hops->added_pct(); }}};
    for (std::size_t b = 0; b < kBlocks; ++b)
        out.push_back({fmt::format("hop_error_pct.{}", b + 1), "%",
                       [=, this] { return hops->chosen()->error_pct.at(b); }});
    return out;
}

std::vector<MetricRow> Mixture::training_metrics() const {
    std::vector<MetricRow> out = {
        {"return_sqnr_db", "dB", [this] { return training->shown()->return_db; }},
        {"return_underflow_pct", "%", [this] { return training->shown()->return_underflow_pct; }}};
    for (const char* arm : kArms)
        out.push_back({fmt::format("gap_{}_pct", arm), "%", [=, this] {
                           for (const ArmRun& run : training->arms)
                               if (run.recipe == arm) return training->gap_pct(run);
                           return kUnknown;
                       }});
    return out;
}

Figure Mixture::thumbnail() const {
    Figure figure = changed_figure(usual_pairs(), {}, false);
    figure.title.clear();
    return figure;
}

Provenance Mixture::provenance() const {
    return params.experiment == "groups" ? Provenance::recorded : Provenance::cpu_emulated;
}

std::string Mixture::device() const {
    if (params.experiment != "groups") return {};
    const Times times = times_of(params.card);
    return times.gemms ? fmt::format("{}, {}", times.recording->gpu, times.recording->grid->date) : "";
}

bool Mixture::stale() const {
    if (!problem.empty()) return false;  // it is what is shown
    if (params.experiment == "routing") return !has_routed();
    if (params.experiment == "groups") return !has_groups();
    if (params.experiment == "hop") return !has_hops();
    return training.is_old();
}

LabEntry entry() { return entry_of<MixtureLab>(Mixture::kInfo); }

}  // namespace fp8lab::experts
