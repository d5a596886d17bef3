// L15, "Many GPUs": a data-parallel training as what it computes and what travels. Numerics are virtual ranks of the CPU's trainer
// (core/nn/ranks/rank_options.h), exact; times are a model of recorded parts (model_time.h).
//
// Actions: "run", "step", "run to <step>", "restart": they set the field "step", from which the trained numbers follow.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/backend/recording.h"
#include "labs/gpus/model_paper.h"
#include "labs/gpus/model_sums.h"
#include "labs/gpus/model_time.h"
#include "labs/gpus/model_training.h"
#include "labs/table/table_lab.h"

namespace fp8lab::gpus {

inline constexpr int kSteps = 2000;
inline constexpr int kMostRanks = 8;                 // of the numerics
inline constexpr int kBadRank = 2, kBadStep = 1000;  // 0-based
inline constexpr int kBadSteps = 15, kHistory = 16;  // how long the histories hold its amax
inline constexpr int kTailSteps = 100;
inline constexpr int kSameSteps = 200,
                     kCheckEvery = 50;  // "the same steps": losses, and weights of all ranks

struct Params {
    std::string gpus = "4", rows = "8192", gather = "e4m3", sum = "bf16", wscale = "reduced", bad = "none";
    std::string shard = "zero1", link = "node", act_amax = "reduced";
    bool fp8 = true;  // GEMMs of the training
    bool overlap = true;
    double link_gbs = 50, jitter = 1;
    int seed = 1, step = 0;

    int world() const { return std::stoi(gpus); }
    int rows_per_gpu() const { return std::stoi(rows); }
    int ranks() const { return std::min(world(), kMostRanks); }
    bool sharded() const { return shard == "zero1"; }
    // What has an effect beside the others.
    bool sends_codes() const { return fp8 && sharded() && gather == "e4m3" && world() > 1; }
    // Only without sharding each rank has weights of its own.
    std::optional<DriftSpec> drift_spec() const {
        if (sharded() || world() == 1 || step == 0) return {};
        return DriftSpec{ranks(), seed, step, sum};
    }
    bool has_bad() const { return fp8 && bad != "none" && world() > kBadRank; }
    StepSpec step_spec() const;  // FP8 as chosen
    std::vector<TrainSpec> arms()
        const;  // BF16 on one rank; E4M3 with one scale and sums in BF16; the chosen one, if it differs
};

// What is sent by one GPU in a step, in bytes.
struct Sent {
    double gradients = 0, weights = 0, amax = 0;
};
Sent sent_of(const Params& params);

// The part of the recordings that the times are made of.
struct Source {
    std::string gpu, date, comm_date;  // empty: nothing was recorded
    Parts bf16, fp8;
    Links links;
    std::string problem = {};  // why a recording of several GPUs cannot be read
    bool known() const { return fp8.known() && links.known(); }
};
Source source_of(const Shipped& shipped, const Recorded& recorded);

struct Times {
    Source source;
    StepTimes fp8, bf16;
    double efficiency_pct = 0, efficiency_most_pct = 0;  // of FP8 at N and at kMostGpus
};
Times times_of(const Source& source, const StepSpec& spec);

// One row of the table of ranks. In a training without a bad rank: of w2, after the newest step.
struct RankRow {
    int rank = 0;
    double amax = 0, scale = 0, off_pct = 0;
    std::uint32_t bytes = 0, values = 0;  // crc32
    double loss = 0, lost_pct = 0;  // with a bad rank: in the steps after it, or in the newest one before it
    bool finite = true;
};
struct Outcome {
    int step = 0;                                                                         // done
    double tail = 0, gap_pct = 0, reference_tail = 0, usual_tail = 0, usual_gap_pct = 0;  // NaN: not trained
    double gradient_error_pct = 0, spread_pct = 0, off_pct = 0, alone_pct = 0;
    bool has_states = false, bytes_equal = false, values_equal = false;
    // Of the first kSameSteps steps: the largest distance of a loss from that of BF16 on one GPU. NaN: no step.
    double loss_off_pct = 0;
    // After each kCheckEvery-th step every rank read the same weights. None: there is no such step, or one rank.
    std::optional<bool> checks_equal = {};
    double lost_bad_pct = 0, lost_others_pct = 0, next5_ratio = 0;
    int first_nonfinite = -1;  // 0-based step
    std::string stopped = {};  // as a sentence
    std::vector<RankRow> rows;
};
Outcome outcome_of(const Params& params, const Training& training);

struct Gpus {
    static const LabInfo kInfo;
    using Params = gpus::Params;
    Gpus();
    std::vector<table::Row> rows(Params& params) const;
    // "step", "sum", "scaling", "ranks", "paper".
    static std::span<const table::Experiment<Gpus>> experiments();
    static std::span<const NamedJudge> judges();
    std::vector<table::Part*> parts() { return {&times, &paper, &sums, &drift, &training, &outcome_part}; }
    Figure thumbnail() const;
    bool perform(std::string_view action);
    void tell(const Error& error) { problem = error.what(); }
    bool stale() const { return sums.busy(); }  // a training shows its newest step
    std::string command() const;                // trains the chosen arm
    std::string torchrun() const;

    Params params;
    std::shared_ptr<const Recorded> recorded_on_several = recorded();
    Source source = source_of(*shipped(), *recorded_on_several);
    table::Computed<StepSpec, Times> times;
    table::Computed<StepSpec, Paper> paper;
    table::Computed<int, Sums> sums;
    table::Computed<DriftSpec, Drift> drift;  // of trainings without sharding
    Training training;
    Outcome outcome;
    std::string problem;  // why a training or the sums failed, in a window
    table::Derived outcome_part;

  private:
    std::vector<Figure> figures() const;
    std::vector<table::MetricRow> metrics() const;
    void add_sums(std::vector<table::MetricRow>& out) const;
    void add_trained(std::vector<table::MetricRow>& out) const;
};
using GpusLab = table::TableLab<Gpus>;

// model_figures.cpp. One piece of a lane of the figure "step", in ms.
struct Piece {
    double from = 0, to = 0;
    bool network = false;
    std::string what;  // "forward", "gradients of layer 2", ...
    double bytes = 0;  // of a network piece: the whole tensor
};
std::vector<Piece> pieces_of(const StepTimes& step, const StepSpec& spec);
std::string step_title(const Params& params, const Times& times);
std::string sum_title(const Sums& sums);
// Steps of ours that were recorded with this setting, by GPUs.
struct MeasuredPoint {
    std::string gpu;
    int gpus = 0;
    double median_ms = 0, efficiency_pct = 0;  // against one GPU of the same call
};
std::vector<MeasuredPoint> measured_points(const Params& params, const Recorded& recorded);
std::string scaling_title(const Params& params, const Times& times, const Recorded& recorded);
std::string ranks_title(const Params& params, const Outcome& outcome, const Drift& drift);
// Where the times are from.
std::string times_words(const Params& params, const Times& times, const Recorded& recorded);
Figure step_figure(const Params& params, const Times& times);
Figure sum_figure(const Params& params, const Sums& sums);
Figure scaling_figure(const Params& params, const Times& times, const Recorded& recorded);
Figure ranks_figure(const Params& params, const Outcome& outcome, const Drift& drift);
Figure paper_figure(const Paper& paper);
// model_words.cpp
std::string sum_label(std::string_view sum);  // "BF16 ring"
std::string pct(double value);                // two or three digits, or "—"

}  // namespace fp8lab::gpus
