// A training of the clinic with all that its instruments show, and what they say of patient and twin.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "labs/clinic/model_cases.h"
#include "labs/live/history.h"

namespace fp8lab::clinic {

struct Run {
    RunSpec spec;
    ModelPlan plan;
    live::History history;  // one arm; a value per step for each of its tensors
    // By tensor: the SQNR of its cast in each step, dB; NaN or empty where it is not cast.
    std::vector<std::vector<float>> sqnr_db;
    // By layer, of the steps 0, kInstrumentSteps, ...: TensorRecord::moved_pct and product_error_pct.
    std::vector<std::vector<float>> moved_pct, product_error_pct;
    std::vector<TensorView>
        views;  // of step s that of tensor s % tensors; empty for recipes that cast nothing

    const live::ArmTrack& arm() const { return history.arms().front(); }
    std::size_t layers() const { return moved_pct.size(); }
    bool ended() const { return arm().stopped.has_value(); }
    double tail() const { return arm().tail_loss(); }
    // The newest view of the tensor that is of `step` or of one before it, else its first one; null: it was never cast.
    const TensorView* view(TensorId tensor, int step) const;
};
using RunPtr = std::shared_ptr<const Run>;

// Trains it, or takes it from those that this process has trained: the newest kKept are kept. `told` hears of each step that
// is done, and may end the work by throwing. Throws what the trainer throws.
inline constexpr std::size_t kKept = 48;
RunPtr run_of(const RunSpec& spec, const std::function<void(int step)>& told = {});

// Mean of the last 100 losses above the other's, per cent; NaN where one has ended.
double gap_pct(const Run& run, const Run& than);

// The longest run of steps in which the loss is above kPlateau times the twin's.
inline constexpr double kPlateau = 3;
struct Plateau {
    int from = 0, steps = 0;
};
Plateau plateau_of(const Run& patient, const Run& twin);

struct WorstUnderflow {
    std::string tensor;  // empty: nothing is cast
    double mean_pct = 0;
};
WorstUnderflow worst_underflow(const Run& run);  // the tensor with the largest mean underflow of the run

}  // namespace fp8lab::clinic
