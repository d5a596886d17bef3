// The series of a training so far: the snapshots' deltas joined. It is append-only with one point per step;
// the arrays are shared with the figures, so that a figure of 100,000 steps costs no copy.
#pragma once

#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/figure/figure.h"
#include "core/nn/model.h"
#include "core/nn/trainer.h"

namespace fp8lab::live {

inline constexpr std::size_t kMeanSteps = 50;   // the thick curve
inline constexpr std::size_t kTailSteps = 100;  // the gap compares means of the last losses

// An array that grows at its end and is handed out without a copy. Whoever still holds an older data() keeps
// what it saw: the next push() then moves on to an array of its own.
class Growing {
  public:
    void push(double value);
    Data data() const { return values_; }
    std::span<const double> values() const { return *values_; }
    std::size_t size() const { return values_->size(); }
    double last() const { return values_->empty() ? 0 : values_->back(); }

  private:
    void own();
    std::shared_ptr<std::vector<double>> values_ = std::make_shared<std::vector<double>>();
};

// Least and greatest of every stretch of a series, so that a strip 40 px wide costs the same after 100,000
// steps as after 100, and still shows a single spike. Stretches double in length whenever there would be more
// than kMost.
class Envelope {
  public:
    struct Stretch {
        double lo, hi;
    };  // both NaN where no value was finite and positive
    static constexpr std::size_t kMost = 128;
    void push(double value);
    const std::vector<Stretch>& stretches() const { return stretches_; }

  private:
    std::vector<Stretch> stretches_;
    std::size_t length_ = 1, filled_ = 0;  // steps a stretch; steps in the last one
};

// Mean of the last `window` values, or of all while there are fewer; NaN where there are none.
double tail_mean(std::span<const double> values, std::size_t window);

struct TensorTrack {
    TensorId id;
    OperandSpec spec;
    // One value per step in which the tensor was measured (a GPU measures only some steps); NaN in a step in
    // which the recipe did not cast it.
    Growing step, amax, scale;
    Growing underflow_step, underflow_pct;
    Growing lost_l1_pct, lost_energy_pct;  // in the same steps; NaN where not known: evidence of before
    Envelope amax_strip, scale_strip;
    std::vector<int> overflow_at;  // the steps in which at least one element was saturated
    double underflow_sum = 0, lost_l1_sum = 0, lost_energy_sum = 0;
    double saturated_casts = 0;  // in which an element saturates, of those steps; NaN without micro-batches
    std::int64_t casts = 0;      // steps in which it was cast
    std::int64_t measured = 0;   // those of them in which its underflow was counted

    bool applies() const { return casts > 0; }
    double underflow_mean_pct() const { return mean(underflow_sum); }  // NaN before the first count
    double lost_l1_mean_pct() const { return mean(lost_l1_sum); }      // NaN too where a step's is not known
    double lost_energy_mean_pct() const { return mean(lost_energy_sum); }
    // Of its casts, with so many micro-batches a step.
    double saturated_casts_pct(int micro_batches) const {
        return 100 * mean(saturated_casts) / micro_batches;
    }

  private:
    double mean(double sum) const;
};

// The mean of those that are not NaN; NaN: none.
class KnownMean {
  public:
    void add(double x) {
        if (!std::isnan(x)) sum_ += x, ++count_;
    }
    bool is_known() const { return count_ > 0; }
    double value() const { return is_known() ? sum_ / count_ : std::numeric_limits<double>::quiet_NaN(); }

  private:
    double sum_ = 0;
    int count_ = 0;
};

struct ArmTrack {
    // mean: of the last kMeanSteps losses, those of the step and of the steps before it. A loss that rises moves it in
    // that step and not before.
    Growing step, loss, mean;
    Growing accuracy;  // NaN where the task has none
    Growing step_ms;
    Growing gap_pct;                   // tail loss against the first arm's, percent; empty in the first arm
    std::vector<TensorTrack> tensors;  // as in StepRecord
    float loss_scale = 0;              // of the newest step; 0: the recipe has none
    int skipped = 0;                   // steps that the loss scaler left out
    // Of the numbers of StepRecord, over the steps that have them.
    KnownMean accumulate_error_pct, v_zero_pct, large_updates_ppm;
    std::optional<NonFinite> stopped;
    std::optional<TensorView> watched;  // the newest
    std::vector<float> decision;        // the newest; empty unless the task is spiral
    std::optional<ArmCost> cost;        // the newest; measured on a GPU only
    Provenance provenance = Provenance::cpu_emulated;

    double tail_loss() const { return tail_mean(loss.values(), kTailSteps); }
    const TensorTrack* find(TensorId id) const;
    const TensorTrack* worst_gradient()
        const;                   // dy with the highest mean underflow; null where none was counted
    bool counts_casts() const;   // TensorTrack::saturated_casts is known
    int overflow_steps() const;  // steps of all tensors together
};

// What a record of a run keeps as the mean of all steps.
struct MeanOfSteps {
    const char* name;
    KnownMean ArmTrack::*track;
    double StepRecord::*record;
};
inline constexpr std::array kMeansOfSteps = {
    MeanOfSteps{"accumulate_error_pct", &ArmTrack::accumulate_error_pct, &StepRecord::accumulate_error_pct},
    MeanOfSteps{"v_zero_pct", &ArmTrack::v_zero_pct, &StepRecord::v_zero_pct},
    MeanOfSteps{"large_updates_ppm", &ArmTrack::large_updates_ppm, &StepRecord::large_updates_ppm}};

// "1.8 % of its absolute sum and 0.035 % of its energy", means of the run; empty where that is not known.
std::string lost_share(const TensorTrack& track);

class History {
  public:
    // Appends the records; snapshots come in order and each record once. Throws Error{failed} for a gap or a
    // repeat.
    void append(const Snapshot& snapshot, const ModelPlan& plan);
    static ArmTrack blank(const ModelPlan& plan);  // an arm before its first step
    int steps() const { return steps_; }           // done
    const std::vector<ArmTrack>& arms() const { return arms_; }

  private:
    int steps_ = 0;
    std::vector<ArmTrack> arms_;
};

}  // namespace fp8lab::live
