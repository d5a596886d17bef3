// L11, "Fewer bits": a trained network with fewer bits per weight and activation, chosen layer by layer. Which mix of
// formats costs what, what the ranges of the inputs change, a cascade of two formats, the KV cache, and which tokens of a
// transformer are in the wider of two formats.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "labs/lower/model_outcome.h"
#include "labs/lower/model_ranges.h"
#include "labs/lower/model_tokens.h"
#include "labs/table/table_lab.h"

namespace fp8lab::lower {

struct Params {
    std::string experiment = "mix";  // "mix", "ranges", "cascade", "kv", "tokens"
    std::string network = "digits", file;
    std::string lower = "both";  // "weights", "both"
    std::string uniform = "mix", probe = "nvfp4";
    double budget = kMostBits;
    std::string act_scale = "dynamic";  // "dynamic", "calibrated"
    int batches = 4, margin = 0;
    double percentile = 100;
    double outlier_ratio = 1;
    std::string smoothing = "off";
    double contrast = 1;
    std::array<std::string, kLayerFields> w, a;  // of a: "w" for the format of the weights
    std::string w_more = "mxfp8", a_more = "w";  // as in MixSpec
    bool revealed = false;                       // the mixes are drawn
    std::string low = "mxfp4", high = "mxfp8";   // of the cascade
    double tau = 0.5;
    KvSpec kv;
    std::string kv_outlier = "8", kv_sharp = "3";
    int kv_seed = 1;
    TokensSpec tokens;
    std::string token_by = "tokens";  // "tokens", "layers"
    WideSpec wide;                    // its `layers` follows from token_by
    Params();

    bool both() const { return lower == "both"; }
    SetupSpec setup() const;
    ScalesSpec scales() const;  // dynamic ones where the activations stay in BF16
    MixSpec mix() const;        // without the budget where it has no effect
    CloudSpec cloud() const { return {setup(), both(), scales()}; }
    RangesSpec ranges() const;
    CascadeSpec cascade() const { return {setup(), low, high}; }
    KvCase kv_case() const;
    TokensRequest tokens_request() const;
};

struct Lower {
    static const LabInfo kInfo;
    using Params = lower::Params;
    std::vector<table::Row> rows(Params& params) const;
    // "mix": "pareto"; "ranges": "outliers", "contrast", "saturated"; "cascade": "cascade", "cost", "margins"; "kv":
    // "kv_memory", "kv_error"; "tokens": "tokens", "token_ratio".
    static std::span<const table::Experiment<Lower>> experiments();
    static std::span<const NamedJudge> judges();
    std::vector<table::Part*> parts() { return {&mixes, &ranges, &cascade, &kv, &tokens, &outcome}; }
    std::vector<table::MetricRow> common_metrics() const;  // of the mix
    // Of the formats of the part that is shown; its cache of keys and values has none.
    std::vector<std::string> recipes() const;
    Figure thumbnail() const;
    void settle();  // outliers and smoothing need relu
    // "reveal": all mixes are drawn. "take_best": the best mix with at most the own one's bits.
    bool perform(std::string_view action);

    // The mixes of the present setup; null: not shown, or not computed yet.
    const Cloud* cloud() const;
    // Sets the chip of a layer (from 0); what the other layers have stays, whatever gave it to them.
    void choose(std::size_t layer, bool activation, std::string_view format);
    void take(const Mix& mix);  // as the fields of its layers

    Params params;
    table::Computed<CloudSpec, std::shared_ptr<const Cloud>> mixes{
        "mix", [this] { return params.revealed ? std::optional(params.cloud()) : std::nullopt; },
        [setup = std::shared_ptr<const Setup>()](const CloudSpec& spec) mutable {
            return make_cloud(spec, setup);
        }};
    table::Computed<RangesSpec, Ranges> ranges{"ranges", [this] { return params.ranges(); },
                                               [before = Ranges()](const RangesSpec& spec) mutable {
                                                   return before = ranges_of(spec, std::move(before));
                                               }};
    table::Computed<CascadeSpec, CascadeSweep> cascade{
        "cascade", [this] { return params.cascade(); },
        [setup = std::shared_ptr<const Setup>()](const CascadeSpec& spec) mutable {
            return cascade_sweep(spec, setup);
        }};
    table::Computed<KvCase, std::optional<KvErrors>> kv{"kv", [this] { return params.kv_case(); }, kv_errors};
    table::Computed<TokensRequest, Tokens> tokens{"tokens", [this] { return params.tokens_request(); },
                                                  TokensMaker()};
    table::Computed<MixRequest, Outcome> outcome{"", [this] { return mix_request(); }, MixMaker(),
                                                 table::When::at_once};

  private:
    MixRequest mix_request() const;
    bool has_relu() const;  // between two layers
    std::vector<Figure> mix_figures() const;
    std::vector<Figure> range_figures() const;
    std::vector<Figure> cascade_figures() const;
    std::vector<Figure> kv_figures() const;
    std::vector<Figure> token_figures() const;
    std::vector<table::MetricRow> cascade_metrics() const;
    std::vector<table::MetricRow> kv_metrics() const;
    std::vector<table::MetricRow> token_metrics() const;
    bool has_cascade() const { return !cascade->at.empty(); }
    bool has_kv() const { return kv->has_value(); }
    bool has_tokens() const { return tokens->sweep != nullptr; }
};
using LowerLab = table::TableLab<Lower>;

// The marks that the exercises ask for; percent of right answers, bits per weight, nats.
inline constexpr double kMostRelL2 = 0.10, kFewBits = 4.6;                                   // L11.1
inline constexpr double kFails_pct = 90, kNotices_pct = 97, kRescued_pct = 96, kRatio = 64;  // L11.2
inline constexpr double kBudgetBits = 5.6, kBudgetDivergence = 0.006;                        // L11.3
inline constexpr double kInRange_pct = 96.5;                                                 // L11.4
inline constexpr double kCascade_pct = 97.3, kCascadeCost = 0.6;                             // L11.5
inline constexpr double kWideShare_pct = 25, kWideDivergence = 0.035;                        // L11.7

// model_figures.cpp. `cloud`: null where it is not shown.
std::string pareto_title(const Outcome& outcome, const Cloud* cloud);
Figure pareto_figure(const Outcome& outcome, const Cloud* cloud);
std::string layers_title(const Outcome& outcome);
std::string outputs_title(const Outcome& outcome);
// "0.0319", "2.8e-4": what a divergence is written as.
std::string divergence_text(double value);
Marker marker_of(const LowFormat& format);

}  // namespace fp8lab::lower
