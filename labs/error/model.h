// L3, "How wrong is a rounded number?": relative error against magnitude for formats and for the notebook's
// fixed point, a tensor under it, and the metrics, which disagree about what is best.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/stats/error_metrics.h"
#include "core/tensors/tensor.h"
#include "labs/error/model_sweep.h"
#include "labs/table/table_lab.h"

namespace fp8lab::error {

struct Params {
    std::string first = "e4m3", second = "e5m2";
    std::string overlay = "none";  // none int8 notebook both
    TensorSpec tensor = {.size = 1};
    std::string scaling = "one";  // one: scale 1; amax: each format's largest value on the tensor's amax
    double at = 17;               // the marker
    bool blind =
        false;  // E4M3, E5M2 and the notebook's E4M3 as A, B and C, in an order that the seed decides
    bool levels = true;  // marks the flat parts; off: the learner finds them
    bool operator==(const Params&) const = default;
};

// One way to round, on the tensor.
struct Row {
    Rounder rounder;
    float scale = 1;
    ErrorMetrics metrics;
};

struct Outcome {
    Params params;              // that it answers
    Range axis;                 // of |x|
    std::vector<Curve> curves;  // first, second, overlays, each once; blind: A, B, C
    std::vector<Row> rows;      // of the same rounders
    Tensor tensor;
    Log2Histogram all, lost, clipped;  // of |x|; what becomes 0 and what saturates in the first row
};
Outcome compute(const Params& params);

// The metrics that the table shows.
struct Column {
    std::string_view id, head, short_head;  // "rel_l2", "relative L2 %", "rel L2 %"
    double (*value)(const ErrorMetrics&);
    bool larger_is_better;
};
std::span<const Column> columns();
// Index of the row that is best in a column; none where two are equally good.
std::optional<std::size_t> best_row(const Outcome& outcome, const Column& column);

// Which of E4M3 "e4m3", E5M2 "e5m2" and "notebook" A, B and C are.
std::array<std::string_view, 3> blind_order(int seed);

struct RoundingError {
    static const LabInfo kInfo;
    using Params = error::Params;
    static std::vector<table::Row> rows(Params& params);
    static std::span<const table::Experiment<RoundingError>> experiments();
    static std::span<const NamedJudge> judges();
    std::vector<table::Part*> parts() { return {&outcome}; }
    Figure thumbnail() const;

    Params params;
    table::Computed<Params, Outcome> outcome{"",
                                             [this] {
                                                 Params asked = params;
                                                 asked.at = 0;  // the marker is read off, not computed
                                                 return asked;
                                             },
                                             compute, table::When::at_once};

  private:
    std::vector<Figure> figures() const;  // "error" and "data"
    std::vector<table::MetricRow> metrics() const;
};
using ErrorLab = table::TableLab<RoundingError>;

// The figures of an outcome; model_figures.cpp.
Figure error_figure(const Outcome& outcome);
Figure data_figure(const Outcome& outcome);
std::string table_title(const Outcome& outcome);  // what the metrics agree on, or not
// The marker's number, what a row rounds it to, and |x - rounded| / x in percent.
struct RoundedMarker {
    double x, rounded, percent;
};
RoundedMarker round_marker(const Row& row, double at);
// "0.3 becomes 0.3125: 4.17 % off"
std::string marker_text(const Outcome& outcome, double at);

}  // namespace fp8lab::error
