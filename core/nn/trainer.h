// The trainer. It is synchronous, starts no thread, and its results depend on no clock: the same seed gives
// the same numbers, with or without a window. Backends implement it (core/trainer/cpu_trainer.h on the CPU).
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/provenance.h"
#include "core/nn/model_plan.h"
#include "core/nn/train_spec.h"
#include "core/stats/tensor_stats.h"

namespace fp8lab {

class Trace;  // core/threads/trace.h

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
// Another recipe for an arm during the training: weights, moments and the number of steps stay.
struct SetRecipe {
    int arm;
    Recipe recipe;
};
// Sets it for all arms; the shape of the schedule stays.
struct SetLearningRate {
    double lr;
};
// Multiplies every element of x of the next batch, once, in every arm.
struct PoisonBatch {
    float factor = 1000.0F;
};
// Calls Model::align_channel() in every arm with the rarest token of the task, once; an aligned channel stays.
struct AlignChannel {};
// The tensor whose histograms the snapshots have; none: no histograms are computed.
struct Watch {
    std::optional<TensorId> tensor;
};
using Command = std::variant<SetHistory, SetMargin, SetAlgo, SetRecipe, SetLearningRate, PoisonBatch,
                             AlignChannel, Watch>;
// Throws usage_error: an arm or a tensor that a training of `spec` does not have, a history, margin or recipe that
// parse_recipe() could not give, a learning rate that is negative or not finite.
void check_command(const TrainSpec& spec, const Command& command);

// ---- Snapshots: values only, series as deltas since the snapshot before
struct TensorRecord {           // one tensor in one step; NaN: not measured in this step
    float amax = 0, scale = 1;  // scale: NaN where the recipe has one per block
    float underflow_pct = 0, overflow_pct = 0, sqnr_db = 0;
    // The lost mass, as CastStats has it. NaN: not known, or not measured in this step.
    float lost_l1_pct = std::numeric_limits<float>::quiet_NaN(), lost_energy_pct = lost_l1_pct;
    // Mean fourth power over the squared mean square: 3 for a normal distribution. Only of models of tokens.
    float kurtosis = std::numeric_limits<float>::quiet_NaN();
    // Of the second cast, where Recipe::inputs give the other GEMM one of its own.
    float second_sqnr_db = std::numeric_limits<float>::quiet_NaN();
    // With micro-batches: in how many of the step's casts an element saturates.
    float saturated_casts = std::numeric_limits<float>::quiet_NaN();
    // Of class w, of model mlp on the CPU, in every kInstrumentSteps-th step: how many of the stored weights this step's
    // update changed, and the distance of fprop's outputs from the exact product of its operands, per cent of its norm.
    float moved_pct = std::numeric_limits<float>::quiet_NaN(), product_error_pct = moved_pct;
    bool applies = true;  // false: the recipe does not cast this tensor (CSV cells stay empty)
};
inline constexpr int kInstrumentSteps = 50;
struct RankRecord {  // one rank in one step
    double loss = 0;
    std::optional<TensorRecord> watched = {};  // its cast of the watched tensor
};
struct StepRecord {
    int step = 0;         // 0-based
    double loss = 0;      // before this step's update
    double accuracy = 0;  // classification only, else NaN
    double step_ms = 0;
    // With Recipe::loss_scale: the scale of this step, and how many steps were left out so far, this one included.
    float loss_scale = 0;
    int skipped = 0;
    // With micro-batches, on the CPU: the distance of the summed gradients from their sum in float64, per cent of its norm.
    double accumulate_error_pct = std::numeric_limits<double>::quiet_NaN();
    // With moments in 16 or 8 bits, of the weights that GEMMs read and of this step's update: elements of v that were above
    // 0 before they were rounded and are 0 now, per cent of all; and updates |w' - w|, the weight decay not counted, of
    // more than 10 lr, in a million. NaN: the step was left out, or the arm stopped in it.
    double v_zero_pct = std::numeric_limits<double>::quiet_NaN(), large_updates_ppm = v_zero_pct;
    // With several ranks, per cent: the largest distance of the weights that a rank reads from those that rank 0 reads, and
    // the distance of the summed gradients of matrices from their sum in float64.
    double rank_spread = std::numeric_limits<double>::quiet_NaN(), sum_error = rank_spread;
    std::vector<RankRecord> ranks = {};  // with several
    // In the order of ModelPlan::tensors. With several ranks of the casts of all; the scale is that of the rank with the
    // largest amax.
    std::vector<TensorRecord> tensors;
};
struct NonFinite {
    int step = 0;                  // 0-based
    std::string tensor;            // the first one that was not finite: "dy2", "loss", "w1"
    std::optional<int> rank = {};  // with several ranks, where it began
};
std::string to_string(const NonFinite&);  // "x1 of rank 2 became non-finite at step 1000"
struct TensorView {                       // histograms of the watched tensor, before and after the cast
    TensorId id;
    int step = 0;
    const FormatInfo* format = nullptr;  // nullptr: not cast
    float scale = 1;
    Log2Histogram before, after;  // of unscaled values; after: dequantised
};
// What a rank will read of the weights in the next step; stochastic rounding then draws other numbers.
struct RankWeight {
    TensorId id;
    float
        amax = 0,
        scale =
            1;  // of the block that it owns (0: none); with which it casts that and, with WeightScale::own, reads
    double off_pct = 0;  // distance of what it reads from the master weights, per cent of their norm
};
struct RankState {
    // Of what it gathered of all matrices, in their order, and of the values that its GEMMs read, as FP32 in
    // little-endian order. None: weights are not sharded.
    std::optional<std::uint32_t> bytes_crc32 = {}, values_crc32 = {};
    std::vector<RankWeight> weights = {};
    bool finite = true;  // all its weights
};
struct ArmCost {  // what a step of this arm costs on a GPU; on the CPU only StepRecord::step_ms is measured
    double step_ms = 0, step_q1_ms = 0, step_q3_ms = 0;  // median and quartiles of the newest launches
    int steps = 0;                                       // how many steps the times above are of
    double flop = 0;                                     // of the GEMMs of one step
    double memory_bytes = 0;                             // device memory of this arm
    // "GEMM", "casts", "optimiser", "bookkeeping": ms of one step, each timed alone. Where their sum is less
    // than the step, "gaps" is the difference; where it is more, parts of a step run at the same time. A cast in the
    // kernel of a norm counts as a norm.
    std::vector<std::pair<std::string, double>> parts;
    // Of several GPUs: how long something travels between them in a step, and how much of it while no GEMM runs; medians of
    // rank 0. NaN: one GPU.
    double network_ms = std::numeric_limits<double>::quiet_NaN(), network_shown_ms = network_ms;
    int graphs = 0;    // captured so far
    std::string note;  // Trainer::note()
};
// The evaluation of a model of tokens, at each kEvaluationSteps-th step and at the last.
struct Evaluation {
    int step = 0;                   // steps done
    double loss = 0, accuracy = 0;  // held-out data, with the casts of the recipe
    // What the weights (FP32) write behind a prompt, of a task whose tokens are characters, else empty: drawn at
    // kTemperature, with the same random numbers in every arm; where only one continuation is right, the most probable
    // tokens, and `expected` beside them. Text is drawn on the CPU: beside a GPU's steps it takes a tenth of the time at
    // most, so that `text_step` may be an older step than `step`; at the last step it is not.
    std::string prompt = {}, continuation = {}, expected = {};
    int text_step = 0;
};
inline constexpr int kEvaluationSteps = 50, kHeldOutBatches = 8, kSampleLength = 85;
inline constexpr double kTemperature = 0.6;
struct ArmSnapshot {
    std::vector<StepRecord> records;   // new since the last snapshot
    std::optional<NonFinite> stopped;  // this arm has ended; the others go on
    std::optional<TensorView> watched;
    std::vector<float> decision;  // spiral: kDecisionGrid^2 probabilities of class 1, rows from y=-1 up
    std::optional<Evaluation> evaluation;  // the newest
    std::vector<RankState> ranks = {};     // with several
    Provenance provenance = Provenance::cpu_emulated;
    std::string emulated_because;  // why a GPU with FP8 tensor cores emulates this recipe; else empty
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
    // All arms advance on the same batches; stopped arms stay. On the CPU a step may be given up on its way
    // (core/threads/ask.h): step() then throws what the caller's `ask` has thrown, and everything is as after the last
    // whole step, in every arm; the next call does the step again, with the same result. So with the evaluation that
    // belongs to a step, without which that step is done all the same.
    virtual void step(int n = 1) = 0;
    // Of a rank that is a process: the bits that any of the processes has set. All call it at the same step. Otherwise its own.
    virtual unsigned of_any_rank(unsigned flags) { return flags; }
    // Takes effect at the next step. Throws as check_command(); then nothing changes.
    virtual void set(const Command& command) = 0;
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
    // From the next step on the spans of each arm go to its track of `trace`, which must outlive the trainer. Evaluations are
    // not in it. Throws Error{backend}: this trainer records none, as that on a GPU.
    virtual void record_spans(Trace& trace);
    // How the shapes were changed to run: "padded to multiples of 16: 1 to 16". Empty: they were not.
    virtual std::string note() const { return {}; }
    // Writes DIR/<n>-<recipe name>.safetensors per arm: FP32 weights, moments, scaling state. Throws
    // Error{failed}.
    virtual void save(const std::filesystem::path& dir) const = 0;
    // Reads one such file for every arm, or a folder with one file per arm in order; the recipes may be
    // others than those of the run that saved them. Throws input_error.
    virtual void load(const std::filesystem::path& path) = 0;
};

}  // namespace fp8lab
