// The trainings of this lab: arms that differ in their ranks, side by side, on a thread of their own.
//
// Each arm has a trainer, because the ranks belong to a whole TrainSpec. All of them do each step together, so that one number
// says how far the training is.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/trainer/training_run.h"
#include "labs/table/computed.h"

namespace fp8lab::gpus {

// One arm, step by step.
struct ArmSeries {
    std::vector<double> loss, spread_pct, sum_error_pct;
    std::vector<std::vector<RankRecord>> ranks;  // by step; x1 is watched
    std::vector<RankState> states;               // after the newest step
    std::optional<NonFinite> stopped;
    int steps() const { return static_cast<int>(loss.size()); }
};

// A Trainer of several, one arm of each: the first of each spec.
std::unique_ptr<Trainer> make_together(const std::vector<TrainSpec>& specs);

// A part of TableLab that trains to a step and rests there. Its result follows from what `plan` gives alone: where that asks
// for an earlier step than the one reached, or for other arms, it trains again from the start.
class Training final : public table::Part {
  public:
    struct Plan {
        std::vector<TrainSpec> arms;
        int step = 0;
    };
    explicit Training(std::function<Plan()> plan);
    ~Training() override;

    // Until the step is reached, whether refresh() has seen that or not.
    bool busy() const override;
    void start_worker(std::function<void()> wake) override { wake_ = std::move(wake); }
    // Without a window it returns when the step is reached. Throws Error where the training failed.
    void refresh(bool shown, bool in_window) override;

    const std::vector<ArmSeries>& arms() const { return arms_; }  // empty before the first step
    int step() const;                                             // that all arms have done
    bool stopped() const;                                         // the last arm has become non-finite
    void again() { keys_.clear(); }                               // from the start, at the next refresh()

  private:
    void begin(const Plan& plan, std::vector<std::string> keys);
    void take();
    void take(const Snapshot& snapshot);
    void collect() const;
    bool arrived(int step) const;

    std::function<Plan()> plan_;
    std::function<void()> wake_;
    std::vector<std::string> keys_;  // of the arms that train
    std::vector<ArmSeries> arms_;
    std::unique_ptr<TrainingRun> run_;
    mutable std::vector<Snapshot> collected_;  // not taken yet
    int goal_ = 0;
    bool running_ = false;
};

// Copies of the weights that drift apart: data parallelism without sharding, where every rank keeps all weights in E4M3 without
// FP32 master weights and rounds its own update stochastically (recipe current:master=none:round_update=stochastic).
//
// All copies get the same sum of the gradients. They stay equal only if all ranks draw the same random numbers.
struct DriftSpec {
    int ranks = 2, seed = 1, steps = 0;
    std::string sum = "bf16";  // find_rank_sum()
    bool operator==(const DriftSpec&) const = default;
};
// One rank's weights after the last step: crc32 of all matrices, and their distance from those of rank 0, per cent of their norm.
struct DriftCopy {
    std::uint32_t same_crc32 = 0, own_crc32 = 0;
    double same_pct = 0, own_pct = 0;
};
struct Drift {
    std::vector<DriftCopy> copies;  // by rank; empty: not computed
    // Mean loss of all ranks over the last 100 steps. NaN: not computed.
    double same_tail = std::numeric_limits<double>::quiet_NaN(), own_tail = same_tail;
    double most_same_pct() const;  // NaN: not computed
    double most_own_pct() const;
};

// Random numbers of their own, and the same ones: two trainings of spec.ranks ranks and spec.steps of 2,000 steps.
Drift drift_of(const DriftSpec& spec);

}  // namespace fp8lab::gpus
