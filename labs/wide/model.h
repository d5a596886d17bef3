// L14, "What stays wide": three parts of a training that recipes keep in 16 or 32 bits, each for its own reason.
// Attention: the range of its probabilities. SwiGLU: a jump of its product under delayed scaling. Optimiser: the size
// of one update of Adam's second moment. Everything is cast on the CPU.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/scaling/recipe.h"
#include "core/threads/job.h"
#include "labs/lab.h"
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
    SwigluSpec swiglu_spec() const;
    OptimiserSpec optimiser_spec() const;
};

// The marks that the exercises ask for: % of the probability lost, steps that saturate, % of v.
inline constexpr double kMostLost_pct = 0.2, kMostOff_pct = 2;

class WideLab final : public Lab {
  public:
    WideLab();
    const LabInfo& info() const override;
    std::vector<Field> fields() override { return fields_of(params_); }
    std::vector<Field> defaults() override { return fields_of(defaults_); }
    // Computes the visible experiment; in a window each of the others once, for the summary.
    void update() override;
    // Of the visible experiment: "mass", "keys"; "timeline", "quadratic", "pair"; "forget", "gap", "cliff".
    std::vector<Figure> figures() const override;
    std::vector<std::string> figure_ids() const override;  // of all three
    Figure thumbnail() const override;
    std::vector<Metric> metrics() const override;  // those of the others are NaN
    std::span<const Exercise> exercises() const override;
    bool busy() const override;
    void set_wake(std::function<void()> wake) override;
    void reset() override;

    const Params& params() const { return params_; }
    const Attention& attention() const { return attention_; }
    const std::vector<SweepPoint>& sweep() const { return sweep_; }
    const Swiglu& swiglu() const { return swiglu_; }
    const Optimiser& optimiser() const { return optimiser_; }
    std::size_t cast() const { return cast_index(params_.cast); }
    const SwigluStep& step() const;  // the one under the cursor
    bool shows(std::string_view experiment) const { return params_.experiment == experiment; }
    // Whether a field belongs to this experiment; whether it has an effect: why not, as a sentence, else.
    bool belongs(std::string_view field) const;
    std::string why_not(std::string_view field) const;
    Recipe recipe() const;        // how h is scaled: delayed or current
    std::string te_code() const;  // that recipe, and what Transformer Engine leaves out of FP8

  private:
    explicit WideLab(std::shared_ptr<Normals> normals);
    static std::vector<Field> fields_of(Params& params);

    bool in_window_ = false;
    Params params_, defaults_;  // defaults_: never changed
    std::optional<AttentionSpec> asked_attention_, asked_sweep_;
    std::optional<SwigluSpec> asked_swiglu_;
    std::optional<OptimiserSpec> asked_optimiser_;
    Job<AttentionSpec, Attention> attention_job_;
    Job<AttentionSpec, std::vector<SweepPoint>> sweep_job_;
    Job<SwigluSpec, Swiglu> swiglu_job_;
    Job<OptimiserSpec, Optimiser> optimiser_job_;
    Attention attention_;
    std::vector<SweepPoint> sweep_;
    Swiglu swiglu_;
    Optimiser optimiser_;
};

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
