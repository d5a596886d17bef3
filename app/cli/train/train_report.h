// What `fp8lab train` writes: the CSV of all steps, the JSON summary, and the table for people.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/backend/backend.h"
#include "core/nn/trainer.h"

namespace fp8lab::cli {

// One arm's run in numbers. NaN where a number does not apply.
struct ArmSummary {
    std::string recipe;
    int steps = 0;
    double first_loss = 0;      // of the first step that was done here
    double tail_loss = 0;       // mean of the last 100 steps
    double tail_accuracy = 0;   // the same, fraction of right answers
    double gap_pct = 0;         // of the tail loss against the first arm's
    double median_step_ms = 0;  // the trainer's own time of a step where it has one
    Provenance provenance = Provenance::cpu_emulated;
    std::string emulated_because;          // on a GPU
    std::optional<ArmCost> cost;           // on a GPU
    std::optional<Evaluation> evaluation;  // the newest
    std::string worst_underflow;           // the tensor with the highest mean underflow over the run: "dy3"
    double worst_underflow_pct = 0;
    double lost_l1_pct = 0, lost_energy_pct = 0;   // of that tensor, means over the run as well
    double v_zero_pct = 0, large_updates_ppm = 0;  // means over the run; NaN: moments in FP32
    std::optional<NonFinite> stopped;
    std::vector<RankState> ranks;  // with several: of the newest weights
};
inline constexpr int kTailSteps = 100;

// Collects snapshots while the run goes on.
class TrainReport {
  public:
    TrainReport(const TrainSpec& spec, DeviceInfo device);

    void add(Snapshot snapshot);

    std::string csv() const;  // cli.md, `--csv` of `train`
    nlohmann::json json() const;
    std::string table() const;
    std::string progress() const;  // "step 500 of 2000: bf16 4.12e-2, delayed 4.20e-2"
    std::vector<ArmSummary> summaries() const;

  private:
    struct ArmRun {
        std::vector<StepRecord> records;
        std::optional<NonFinite> stopped;
        Provenance provenance = Provenance::cpu_emulated;
        std::string emulated_because;
        std::optional<ArmCost> cost;
        std::optional<Evaluation> evaluation;  // the newest
        std::vector<RankState> ranks;
    };
    bool all_as_the_device() const;  // as to provenance
    const TrainSpec& spec_;
    DeviceInfo device_;
    std::vector<ArmRun> arms_;
    int steps_done_ = 0;
};

}  // namespace fp8lab::cli
