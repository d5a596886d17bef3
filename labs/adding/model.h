// L7, "Rounding and adding": running sums that stop, stochastic rounding, a dot product in a narrow
// accumulator, and a weight that its updates do not move.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/backend/backends.h"
#include "core/backend/recording.h"
#include "core/figure/palette.h"
#include "labs/adding/model_dot.h"
#include "labs/adding/model_round.h"
#include "labs/table/table_lab.h"

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
    std::string problem;  // why there are no lines; both empty: not asked for
};

struct Dot {
    std::vector<DotError> narrow, promoted, fp32, cast;  // over K
    DotError narrow_at_k, promoted_at_k, fp32_at_k, cast_at_k;
    DotError half_as_often_at_k;  // promoted at twice the interval
    std::vector<DotError> sweep;  // over the interval (its k), at K
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

// The products of the request before are kept.
class Compute {
  public:
    Outcome operator()(const Params& params);

  private:
    Dot make_dot(const Params& params);

    Products products_;  // of data and seed
    std::string data_;
    int seed_ = 0;
};

struct Adding {
    static const LabInfo kInfo;
    using Params = adding::Params;
    explicit Adding(Backends backends = {});
    static std::vector<table::Row> rows(Params& params);
    static std::span<const table::Experiment<Adding>> experiments();
    static std::span<const NamedJudge> judges();
    std::vector<table::Part*> parts() { return {&outcome, &measured}; }
    Figure thumbnail() const;
    Table table() const;
    Hardware hardware() const;  // that the dot product is compared with

    Params params;
    table::Computed<Params, Outcome> outcome{"", [this] { return params; }, Compute(), table::When::at_once};
    table::Computed<bool, Hardware> measured;  // on this GPU, once it was asked for

  private:
    std::vector<Figure> figures() const;  // of the experiment at hand: the main one, then why
    // Measurements on this GPU are in figures and table only, because another machine could not repeat them.
    std::vector<table::MetricRow> metrics() const;
};
using AddingLab = table::TableLab<Adding>;

// model_sums.cpp, model_dice.cpp, model_weight.cpp
std::vector<Choice> sum_formats();  // those that tensors of a training have
std::vector<Sum> make_sums(const Params& params);
Dice make_dice(const Params& params);
Weight make_weight(const Params& params);
Hardware recorded_hardware(std::string_view id);       // of `hardware`
Hardware measured_hardware(const Backends& backends);  // a second or two, on the GPU

std::vector<Figure> sum_figures(const Outcome& outcome, const Params& params);
std::vector<Figure> dice_figures(const Outcome& outcome, const Params& params);
std::vector<Figure> dot_figures(const Outcome& outcome, const Params& params, const Hardware& hardware);
std::vector<Figure> weight_figures(const Outcome& outcome, const Params& params);

}  // namespace fp8lab::adding
