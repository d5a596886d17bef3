// L2, "The uneven ruler": the values of up to four formats as marks on one axis, an interval to count them
// in, and a tensor underneath, against which the scale slides the ruler.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/tensors/tensor.h"
#include "labs/ruler/model_marks.h"
#include "labs/ruler/model_tensor.h"
#include "labs/table/table_lab.h"

namespace fp8lab::ruler {

struct Params {
    std::string first = "e4m3", second = "e5m2", third = "none", fourth = "none";
    std::string axis = "linear";  // linear log binades
    TensorSpec tensor;
    double scale = 1;
    double brush_lo = 128, brush_hi = 256;
    bool fixed_point = false;  // the notebook's stand-in as one more lane
    bool operator==(const Params&) const = default;
};

struct Lane {
    FormatInfo format;
    Role role = Role::truth;
    std::vector<double> marks;  // positive values / scale
    Half half;
    Interval brushed;
    CastReport cast;  // empty without a tensor
};

struct Outcome {
    std::vector<Lane> lanes;  // the formats chosen, each once, in the order of the fields
    std::vector<float> tensor;
    Excluded excluded;  // of one's own tensor
    Range axis;         // of |x|; does not move with the scale, so that the ruler does
    Histogram data;     // counted with the first lane's cast
    Range window;       // of the first lane: smallest and largest mark
    double handle = 0;  // where its handle is held: the middle of the window; may be off the axis
    std::vector<double>
        fixed_point;  // marks of the stand-in on the axis; empty when off or denser than 4,096
};

// The tensor is kept while its own parameters stay.
class Compute {
  public:
    Outcome operator()(const Params& params);

  private:
    TensorSpec drawn_ = {.kind = "none"};  // what tensor_ was made from
    std::vector<float> tensor_;
    Excluded excluded_;
};

struct Ruler {
    static const LabInfo kInfo;
    using Params = ruler::Params;
    static std::vector<table::Row> rows(Params& params);
    static std::span<const table::Experiment<Ruler>> experiments();
    static std::span<const NamedJudge> judges();
    std::vector<table::Part*> parts() { return {&outcome}; }
    Figure thumbnail() const;

    // The handle was dragged from one place on the axis to another: the ruler follows, the scale is what it
    // takes.
    void slide(double from, double to);
    // The interval, its ends in any order.
    void brush(double lo, double hi);

    Params params;
    table::Computed<Params, Outcome> outcome{"", [this] { return params; }, Compute(), table::When::in_frame};

  private:
    std::vector<Figure> figures() const;  // "ruler", "gaps" and, with a tensor, "data"
    std::vector<table::MetricRow> metrics() const;
};
using RulerLab = table::TableLab<Ruler>;

// The figures of an outcome; model_figures.cpp.
Figure ruler_figure(const Outcome& outcome, const Params& params);
Figure gap_figure(const Outcome& outcome, const Params& params);
Figure data_figure(const Outcome& outcome, const Params& params);

}  // namespace fp8lab::ruler
