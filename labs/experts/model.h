// L18, "Experts": a mixture of experts chooses by its router which experts read a token. What fewer bits change of the choice, of the
// speed of an expert with few rows, of the way to it and back, and of its scales. Four parts, a value of the field "experiment" each:
// model_routing.h, model_groups.h, model_hop.h and model_training.h.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "labs/experts/model_groups.h"
#include "labs/experts/model_hop.h"
#include "labs/experts/model_routing.h"
#include "labs/experts/model_training.h"
#include "labs/table/long.h"
#include "labs/table/table_lab.h"

namespace fp8lab::experts {

struct Params {
    std::string experiment = "routing";  // "routing", "groups", "hop", "training"
    int seed = 1;
    // routing
    std::string layers_in = "mxfp8", router = "fp32";
    std::string routes = "new";  // whose choices the panel tells of: "new" or "kept"
    // groups
    std::string pool = "256/8", tokens = "4096", pad = "128", card = "h200";
    double skew = 0;
    // hop
    std::string gemm = "mxfp8", send = "mxfp8", back = "bf16";
    // training
    std::string arms = "delayed", starve = "off", empty = "roll", balance = "bias";
    int experts = 8, active = 2, steps = kMostSteps;

    RoutedSpec routed_spec() const { return {layers_in, router, seed}; }
    Pair pair() const { return {layers_in, router}; }
    GroupsSpec groups_spec() const { return {pool, std::stoi(tokens), pool == "own" ? 0 : skew, seed}; }
    int padding() const { return std::stoi(pad); }  // 1: none
    HopSpec hop_spec() const { return {{gemm, send, back}, seed}; }
    TrainingSpec training_spec() const {
        return {{steps, experts, active, balance, starve, empty, seed}, arms};
    }
};

struct Mixture {
    static const LabInfo kInfo;
    using Params = experts::Params;
    Mixture();
    std::vector<table::Row> rows(Params& params) const;
    // "routing": "changed", "margin"; "groups": "rows", "time"; "hop": "hop"; "training": "loss", "expert_rows", "dy_sqnr".
    static std::span<const table::Experiment<Mixture>> experiments();
    static std::span<const NamedJudge> judges();
    std::vector<table::Part*> parts() { return {&routed, &pairs, &groups, &hops, &training}; }
    std::vector<std::string> recipes() const;  // of what the part casts
    Figure thumbnail() const;
    void settle();
    void tell(const Error& error) { problem = error.what(); }
    Provenance provenance() const;
    std::string device() const;  // of the part groups: what was recorded
    bool stale() const;

    Hop hop() const { return params.hop_spec().hop; }

    Params params;
    std::string problem;  // why something cannot be computed, in a window
    table::Computed<RoutedSpec, Routed> routed;
    table::Long<Pair, Pairs> pairs;
    table::Computed<GroupsSpec, Groups> groups;
    table::Computed<HopSpec, Hops> hops;
    table::Long<TrainingSpec, Training> training;

  private:
    std::vector<Figure> routing_figures() const;
    std::vector<Figure> groups_figures() const;
    std::vector<Figure> hop_figures() const;
    std::vector<Figure> training_figures() const;
    std::vector<table::MetricRow> routing_metrics() const;
    std::vector<table::MetricRow> groups_metrics() const;
    std::vector<table::MetricRow> hop_metrics() const;
    std::vector<table::MetricRow> training_metrics() const;
    bool has_routed() const { return routed->tokens > 0 && routed->spec == params.routed_spec(); }
    bool has_groups() const { return !groups->rows.empty() && groups->spec == params.groups_spec(); }
    bool has_hops() const { return hops->chosen() != nullptr && hops->spec == params.hop_spec(); }
    bool has_training() const { return training->spec == params.training_spec() && training->is_complete(); }
};
using MixtureLab = table::TableLab<Mixture>;

}  // namespace fp8lab::experts
