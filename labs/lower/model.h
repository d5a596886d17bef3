// L11, "Fewer bits": a trained network with fewer bits per weight and activation, chosen layer by layer. Which mix of
// formats costs what, what the ranges of the inputs change, a cascade of two formats, and the KV cache.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/threads/job.h"
#include "labs/lab.h"
#include "labs/lower/model_outcome.h"
#include "labs/lower/model_ranges.h"

namespace fp8lab::lower {

struct Params {
    std::string experiment = "mix";  // "mix", "ranges", "cascade", "kv"
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
    Params();

    bool both() const { return lower == "both"; }
    SetupSpec setup() const;
    ScalesSpec scales() const;  // dynamic ones where the activations stay in BF16
    MixSpec mix() const;        // without the budget where it has no effect
    CloudSpec cloud() const { return {setup(), both(), scales()}; }
    RangesSpec ranges() const;
    CascadeSpec cascade() const { return {setup(), low, high}; }
    KvCase kv_case() const;
};

class LowerLab final : public Lab {
  public:
    LowerLab();
    const LabInfo& info() const override;
    std::vector<Field> fields() override { return fields_of(params_); }
    std::vector<Field> defaults() override { return fields_of(defaults_); }
    void update() override;
    std::vector<Figure> figures() const override;  // of the visible experiment
    std::vector<std::string> figure_ids() const override;
    Figure thumbnail() const override;
    std::vector<Metric> metrics() const override;  // those of other experiments are NaN
    std::span<const NamedJudge> judges() const override;
    bool busy() const override;
    void set_wake(std::function<void()> wake) override;
    void reset() override;

    const Params& params() const { return params_; }
    const Outcome& outcome() const { return outcome_; }
    const CascadeSweep& cascade() const { return cascade_; }
    // The mixes of the present setup; null: not shown, or not computed yet.
    const Cloud* cloud() const;
    bool shows(std::string_view experiment) const { return params_.experiment == experiment; }
    // Whether a field belongs to the visible experiment; why it has no effect, as a sentence, else empty.
    bool belongs(std::string_view field) const;
    std::string why_not(std::string_view field) const;
    // Sets the chip of a layer (from 0); what the other layers have stays, whatever gave it to them.
    void choose(std::size_t layer, bool activation, std::string_view format);
    void take(const Mix& mix);  // as the fields of its layers

  private:
    static std::vector<Field> fields_of(Params& params);
    // "reveal": all mixes are drawn. "take_best": the best mix with at most the own one's bits.
    void perform(std::string_view action) override;

    Params params_, defaults_;  // defaults_: never changed
    struct Request {
        MixSpec spec;
        std::shared_ptr<const Cloud> cloud;  // for a budget
        bool operator==(const Request&) const = default;
    };
    std::optional<Request> asked_mix_;
    std::optional<CloudSpec> asked_cloud_;
    Job<Request, Outcome> mix_job_;
    Job<CloudSpec, std::shared_ptr<const Cloud>> cloud_job_;
    Outcome outcome_;
    std::shared_ptr<const Cloud> cloud_;
    std::optional<RangesSpec> asked_ranges_;
    std::optional<CascadeSpec> asked_cascade_;
    std::optional<KvCase> asked_kv_;
    Job<RangesSpec, Ranges> ranges_job_;
    Job<CascadeSpec, CascadeSweep> cascade_job_;
    Job<KvCase, KvErrors> kv_job_;
    Ranges ranges_;
    CascadeSweep cascade_;
    std::optional<KvErrors> kv_;
};

// The marks that the exercises ask for; percent of right answers, bits per weight, nats.
inline constexpr double kMostRelL2 = 0.10, kFewBits = 4.6;                                   // L11.1
inline constexpr double kFails_pct = 90, kNotices_pct = 97, kRescued_pct = 96, kRatio = 64;  // L11.2
inline constexpr double kBudgetBits = 5.6, kBudgetDivergence = 0.006;                        // L11.3
inline constexpr double kInRange_pct = 96.5;                                                 // L11.4
inline constexpr double kCascade_pct = 97.3, kCascadeCost = 0.6;                             // L11.5

// model_figures.cpp. `cloud`: null where it is not shown.
std::string pareto_title(const Outcome& outcome, const Cloud* cloud);
Figure pareto_figure(const Outcome& outcome, const Cloud* cloud);
std::string layers_title(const Outcome& outcome);
std::string outputs_title(const Outcome& outcome);
// "0.0319", "2.8e-4": what a divergence is written as.
std::string divergence_text(double value);
Marker marker_of(const LowFormat& format);

}  // namespace fp8lab::lower
