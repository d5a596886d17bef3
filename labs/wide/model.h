// L14, "What stays wide": three parts of a training that recipes keep in 16 or 32 bits, each for its own reason.
// Attention: the range of its probabilities. SwiGLU: a jump of its product under delayed scaling. Optimiser: the size
// of one update of Adam's second moment. Everything is cast on the CPU.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/scaling/recipe.h"
#include "labs/table/table_lab.h"
#include "labs/wide/model_attention.h"
#include "labs/wide/model_optimiser.h"
#include "labs/wide/model_swiglu.h"

namespace fp8lab::wide {

struct Params {
    std::string experiment = "attention";  // "attention", "swiglu", "optimiser"
    std::string keys = "8192", cast = "norm1", format = "e4m3", row_sum = "before";
    double sigma = 3, sink = 0;
    int head = 64, seed = 2;
    SwigluSpec swiglu;  // its seed is `seed`
    int step = kGrowthStep;
    std::string beta2 = "0.999";
    OptimiserSpec optimiser;  // its beta2 and seed are those above
    double params = 7e9;

    AttentionSpec attention_spec() const;
    AttentionSpec sweep_spec() const;  // of all lengths, and of no output
    SwigluSpec swiglu_spec() const;
    OptimiserSpec optimiser_spec() const;
};

// The marks that the exercises ask for: % of the probability lost, steps that saturate, % of v.
inline constexpr double kMostLost_pct = 0.2, kMostOff_pct = 2;

struct Wide {
    static const LabInfo kInfo;
    using Params = wide::Params;
    static std::vector<table::Row> rows(Params& params);
    // "attention": "mass", "keys"; "swiglu": "timeline", "quadratic", "pair"; "optimiser": "forget", "gap", "cliff".
    static std::span<const table::Experiment<Wide>> experiments();
    static std::span<const NamedJudge> judges();
    std::vector<table::Part*> parts() { return {&attention, &sweep, &swiglu, &optimiser}; }
    Figure thumbnail() const;
    void settle();

    std::size_t cast() const { return cast_index(params.cast); }
    const SwigluStep& step() const;            // the one under the cursor
    std::vector<std::string> recipes() const;  // where SwiGLU is shown: recipe()
    Recipe recipe() const;                     // how h is scaled: delayed or current
    std::string te_code() const;               // that recipe, and what Transformer Engine leaves out of FP8

    Params params;
    std::shared_ptr<Normals> normals = std::make_shared<Normals>();
    table::Computed<AttentionSpec, Attention> attention{
        "attention", [this] { return params.attention_spec(); },
        [kept = normals](const AttentionSpec& spec) { return attention_of(spec, *kept); }, table::When::once};
    table::Computed<AttentionSpec, std::vector<SweepPoint>> sweep{
        "attention", [this] { return params.sweep_spec(); },
        [kept = normals](const AttentionSpec& spec) { return sweep_of(spec, *kept); }};
    table::Computed<SwigluSpec, Swiglu> swiglu{
        "swiglu", [this] { return params.swiglu_spec(); },
        [draws = std::make_shared<SwigluDraws>()](const SwigluSpec& spec) { return swiglu_of(spec, *draws); },
        table::When::once};
    table::Computed<OptimiserSpec, Optimiser> optimiser{
        "optimiser", [this] { return params.optimiser_spec(); }, optimiser_of, table::When::once};

  private:
    std::vector<Figure> attention_figures() const;
    std::vector<Figure> swiglu_figures() const;
    std::vector<Figure> optimiser_figures() const;
    std::vector<table::MetricRow> attention_metrics() const;
    std::vector<table::MetricRow> swiglu_metrics() const;
    std::vector<table::MetricRow> optimiser_metrics() const;
    bool has_swiglu() const { return !swiglu->steps.empty(); }
    bool has_optimiser() const { return !optimiser->exact.empty(); }
};
using WideLab = table::TableLab<Wide>;

// model_attention_figures.cpp
std::string mass_title(const Attention& attention, std::size_t cast);
std::string keys_title(const std::vector<SweepPoint>& sweep);
Figure mass_figure(const Attention& attention, std::size_t cast);
Figure keys_figure(const std::vector<SweepPoint>& sweep, const Attention& attention, std::size_t cast);
// model_swiglu_figures.cpp
std::string timeline_title(const Swiglu& swiglu);
std::string fix_name(const SwigluSpec& spec);  // "margin 2", "Smooth-SwiGLU"; empty: none
Figure timeline_figure(const Swiglu& swiglu);
Figure quadratic_figure(const Swiglu& swiglu);
Figure pair_figure(const Swiglu& swiglu);
// model_optimiser_figures.cpp
std::string forget_title(const Optimiser& optimiser);
std::string gap_title(const Optimiser& optimiser);
Figure forget_figure(const Optimiser& optimiser);
Figure gap_figure(const Optimiser& optimiser);
Figure cliff_figure(const Optimiser& optimiser);

// "22.0", "0.018", "0": two or three digits of a percentage.
std::string share_text(double pct);
std::string format_label(std::string_view format);  // "E4M3"

}  // namespace fp8lab::wide
