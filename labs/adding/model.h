// L7, "Rounding and adding": running sums that stop, stochastic rounding, a dot product in a narrow
// accumulator, and a weight that its updates do not move.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/backend/backends.h"
#include "core/backend/recording.h"
#include "core/figure/palette.h"
#include "core/threads/job.h"
#include "labs/adding/model_dot.h"
#include "labs/adding/model_round.h"
#include "labs/lab.h"

namespace fp8lab::adding {

struct Params {
    std::string experiment = "sum";  // sum dice dot weight
    std::string format = "e4m3", rounding = "nearest";
    double addend = 1;
    int terms = 4096;
    double x = 17.3;
    int draws = 1000;
    std::string data = "uniform";
    int k = 4096, width = Accumulator::kHopper, interval = 128;
    std::string hardware = "recorded";  // the first recording; the id of another; live
    double start = 1, update = 0.01;
    int updates = 1000;
    int seed = 1;
    bool operator==(const Params&) const = default;
};

// A sum in one accumulator format.
struct Sum {
    FormatInfo format;
    std::vector<double> path;  // (terms + 1)
    double exact = 0;          // of the last
    double stall = 0;          // by rounding to nearest; Inf: not within reach
    double error_pct() const;
};

struct Dice {
    FormatInfo format;
    Neighbours around;
    std::vector<RoundedDraws> draws;  // one per method, in the order of kMethods
    std::vector<TensorCast> tensors;  // N(0, 1), 16,384 elements, likewise
    std::size_t chosen = 0;
    // Over the binade of x, in units of the gap at x: the error of nearest, the mean error of
    // `draws` draws by the chosen method, and its deviation in one draw.
    std::vector<double> xs, nearest, mean, deviation;
};

// What hardware was measured to lose.
struct Hardware {
    std::vector<AccumulationError> lines;
    Provenance provenance = Provenance::recorded;
    std::string where;    // "NVIDIA H200, 2026-11-21"; of this machine: "NVIDIA H200"
    std::string problem;  // why there are no lines
};

struct Dot {
    std::vector<DotError> narrow, promoted, fp32, cast;  // over K
    DotError narrow_at_k, promoted_at_k, fp32_at_k, cast_at_k;
    DotError half_as_often_at_k;  // promoted at twice the interval
    std::vector<DotError> sweep;  // over the interval (its k), at K
    Hardware hardware;
};

struct Weight {
    FormatInfo format;
    std::vector<double> exact, nearest, one, mean, low, high, copy;  // (updates + 1)
    Neighbours around;                                               // of the start, one gap to each side
    double final_mean = 0, final_deviation = 0;
};

// The outcome of one experiment; what belongs to the others is empty.
struct Outcome {
    Params params;          // that it answers
    std::vector<Sum> sums;  // e4m3 e5m2 bf16 fp16 fp32
    std::size_t chosen = 0;
    Dice dice;
    Dot dot;
    Weight weight;
};

// The numbers under the figures, one row per contender.
struct Table {
    struct Column {
        std::string head;
        bool narrow = true;  // shown in a narrow stage too
    };
    struct Row {
        std::string label;
        Role role = Role::text;
        std::vector<double> values;  // Inf: "never"
        bool chosen = false;
    };
    std::string title;
    std::vector<Column> columns;
    std::vector<Row> rows;
};

class AddingLab final : public Lab {
  public:
    explicit AddingLab(Backends backends = {});
    const LabInfo& info() const override;
    std::vector<Field> fields() override { return fields_of(params_); }
    std::vector<Field> defaults() override { return fields_of(defaults_); }
    void update() override;
    std::vector<Figure> figures() const override;  // of the experiment at hand: the main one, then why
    Figure thumbnail() const override;
    // Measurements on this GPU are in figures and table only, because another machine could not repeat them.
    std::vector<Metric> metrics() const override;
    std::span<const NamedJudge> judges() const override;
    bool busy() const override { return computing_->busy() || measuring_->busy(); }
    void set_wake(std::function<void()> wake) override {
        computing_->start_worker(wake);
        measuring_->start_worker(std::move(wake));
    }
    void reset() override;

    // Whether a field has an effect on the experiment at hand.
    bool applies(std::string_view field) const;
    Table table() const;
    const Outcome& outcome() const { return outcome_; }
    const Params& params() const { return params_; }

  private:
    void add_hardware();
    void take_measurement();

    Backends backends_;
    std::unique_ptr<Job<Params, Outcome>> computing_;
    std::unique_ptr<Job<Backends, Hardware>> measuring_;
    std::optional<Hardware> measured_;  // once asked for
    static std::vector<Field> fields_of(Params& params);

    Params params_;
    Params defaults_;  // never changed
    std::optional<Params> asked_;
    Outcome outcome_;
};

// model_sums.cpp, model_dice.cpp, model_weight.cpp
std::vector<Choice> sum_formats();  // those that tensors of a training have
std::vector<Sum> make_sums(const Params& params);
Dice make_dice(const Params& params);
Weight make_weight(const Params& params);
Hardware recorded_hardware(std::string_view id);       // of `hardware`
Hardware measured_hardware(const Backends& backends);  // a second or two, on the GPU

std::vector<Figure> sum_figures(const Outcome& outcome, const Params& params);
std::vector<Figure> dice_figures(const Outcome& outcome, const Params& params);
std::vector<Figure> dot_figures(const Outcome& outcome, const Params& params);
std::vector<Figure> weight_figures(const Outcome& outcome, const Params& params);

}  // namespace fp8lab::adding
