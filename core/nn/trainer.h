// The trainer: synchronous, no thread, no clock in its results. Same seed, same numbers, window or not.
// Backends implement it (core/nn/cpu_trainer.h emulates every recipe bit-exactly on the CPU).
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/provenance.h"
#include "core/nn/train_spec.h"
#include "core/scaling/quantizer.h"
#include "core/stats/tensor_stats.h"

namespace fp8lab {

// A tensor of the network: layer 1..n, class x (the layer's input), w, dy (gradient at the layer's output).
struct TensorId {
    TensorClass tensor = TensorClass::x;
    int layer = 1;
    bool operator==(const TensorId&) const = default;
};
std::string to_string(TensorId id);  // "dy2"

// ---- Commands: by value, applied at the next step boundary, in order
struct SetHistory {
    int arm;
    int history;
};
struct SetMargin {
    int arm;
    int margin;
};
struct SetAlgo {
    int arm;
    AmaxAlgo algo;
};
struct SetRecipe {
    int arm;
    Recipe recipe;
};  // precision switch in mid-run: weights, moments and step stay
struct SetLearningRate {
    double lr;
};  // both arms; the schedule's shape stays
struct PoisonBatch {
    float factor = 1000.0F;
};  // multiplies x of the next batch, once, in every arm
struct Watch {
    std::optional<TensorId> tensor;
};  // whose histograms the snapshots carry; none costs nothing
using Command = std::variant<SetHistory, SetMargin, SetAlgo, SetRecipe, SetLearningRate, PoisonBatch, Watch>;

// ---- Snapshots: values only, series as deltas since the snapshot before
struct TensorRecord {           // one tensor in one step
    float amax = 0, scale = 1;  // scale: NaN where the recipe has one per block
    float underflow_pct = 0, overflow_pct = 0, sqnr_db = 0;
    bool applies = true;  // false: the recipe does not cast this tensor (CSV cells stay empty)
};
struct StepRecord {
    int step = 0;         // 0-based
    double loss = 0;      // before this step's update
    double accuracy = 0;  // classification only, else NaN
    double step_ms = 0;
    std::vector<TensorRecord> tensors;  // layer-major: x1 w1 dy1 x2 w2 dy2 ...
};
struct NonFinite {
    int step = 0;
    std::string tensor;
};                   // first non-finite tensor: "dy2", "loss", "w1"
struct TensorView {  // histograms of the watched tensor, before and after the cast
    TensorId id;
    int step = 0;
    const FormatInfo* format = nullptr;  // nullptr: not cast
    float scale = 1;
    Log2Histogram before, after;  // of unscaled values; after: dequantised
};
struct ArmCost {  // what a step of this arm takes on a GPU; on the CPU step_ms of the records says it
    double step_ms = 0, step_q1_ms = 0, step_q3_ms = 0;  // median and quartiles of the newest launches
    int steps = 0;                                       // that these describe
    double flop = 0;                                     // of its GEMMs, a step
    double memory_bytes = 0;                             // that this arm holds
    // "GEMM", "casts", "optimiser", "bookkeeping": ms of one step, timed one after the other. Where they are
    // less than the step, "gaps" makes up for it; where they are more, parts of a step run side by side.
    std::vector<std::pair<std::string, double>> parts;
    int graphs = 0;    // captured so far
    std::string note;  // Trainer::note()
};
struct ArmSnapshot {
    std::vector<StepRecord> records;   // new since the last snapshot
    std::optional<NonFinite> stopped;  // this arm has ended; the others go on
    std::optional<TensorView> watched;
    std::vector<float> decision;  // spiral: kDecisionGrid^2 probabilities of class 1, rows from y=-1 up
    Provenance provenance = Provenance::cpu_emulated;
    std::string emulated_because;  // why a GPU with FP8 tensor cores emulates this recipe; empty elsewhere
    std::optional<ArmCost> cost;
};
inline constexpr int kDecisionGrid = 64;  // over [-1, 1]^2
struct Snapshot {
    int step = 0;  // steps done
    std::vector<ArmSnapshot> arms;
};

class Trainer {
  public:
    virtual ~Trainer() = default;
    virtual void step(int n = 1) = 0;              // all arms advance on the same batches; stopped arms stay
    virtual void set(const Command& command) = 0;  // takes effect at the next step
    virtual Snapshot snapshot() = 0;
    virtual int steps_done() const = 0;
    // How many steps one call of step() should do for full speed. 1 on the CPU; a GPU takes several per
    // launch when a step is shorter than the launch.
    virtual int steps_per_call() const { return 1; }
    virtual const std::optional<NonFinite>& stopped(
        int arm) const = 0;     // as in the snapshots, without taking one
    bool all_stopped() const {  // every arm has become non-finite
        for (int arm = 0; arm < static_cast<int>(spec().arms.size()); ++arm)
            if (!stopped(arm)) return false;
        return true;
    }
    virtual const TrainSpec& spec() const = 0;
    // How the shape is run where that is not as it was given: "padded to multiples of 16: 1 to 16"; may be
    // empty.
    virtual std::string note() const { return {}; }
    // DIR/<n>-<recipe name>.safetensors per arm: FP32 weights, moments, scaling state. load() takes such a
    // file for every arm, or a DIR with one file per arm in order, whatever the recipe of the run that goes
    // on.
    virtual void save(const std::filesystem::path& dir) const = 0;
    virtual void load(const std::filesystem::path& path) = 0;
};

}  // namespace fp8lab
