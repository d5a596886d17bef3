// L2, "The uneven ruler": the values of up to four formats as marks on one axis, an interval to count them
// in, and a tensor underneath, against which the scale slides the ruler.
#pragma once

#include <string>
#include <vector>

#include "core/tensors/tensor.h"
#include "labs/lab.h"
#include "labs/ruler/model_marks.h"
#include "labs/ruler/model_tensor.h"

namespace fp8lab::ruler {

struct Params {
    std::string first = "e4m3", second = "e5m2", third = "none", fourth = "none";
    std::string axis = "linear";  // linear log binades
    TensorSpec tensor;
    double scale = 1;
    double brush_lo = 128, brush_hi = 256;
    bool fixed_point = false;  // the notebook's stand-in as one more lane
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

class RulerLab final : public Lab {
  public:
    RulerLab() { update(); }
    const LabInfo& info() const override;
    std::vector<Field> fields() override { return fields_of(params_); }
    std::vector<Field> defaults() override { return fields_of(defaults_); }
    void update() override;
    // "ruler", "gaps" and, with a tensor, "data".
    std::vector<Figure> figures() const override;
    Figure thumbnail() const override;
    std::vector<Metric> metrics() const override;
    void reset() override;
    std::span<const Exercise> exercises() const override;

    // The handle was dragged from one place on the axis to another: the ruler follows, the scale is what it
    // takes.
    void slide(double from, double to);
    // The interval, its ends in any order.
    void brush(double lo, double hi);

    const Outcome& outcome() const { return outcome_; }
    const Params& params() const { return params_; }

  private:
    static std::vector<Field> fields_of(Params& params);

    Params params_;
    Params defaults_;                      // never changed
    TensorSpec drawn_ = {.kind = "none"};  // what outcome_.tensor was made from
    Outcome outcome_;
};

// Of an outcome; model_figures.cpp.
Figure ruler_figure(const Outcome& outcome, const Params& params);
Figure gap_figure(const Outcome& outcome, const Params& params);
Figure data_figure(const Outcome& outcome, const Params& params);

}  // namespace fp8lab::ruler
