// L4, "Fit the tensor into the window": the histogram of a tensor under what a format can hold, and the one
// number, the scale, that positions that window.
#pragma once

#include <string>
#include <vector>

#include "labs/table/table_lab.h"
#include "labs/window/model_cast.h"

namespace fp8lab::window {

struct Window {
    static const LabInfo kInfo;
    using Params = CastSpec;
    static std::vector<table::Row> rows(CastSpec& params);
    static std::span<const table::Experiment<Window>> experiments();
    static std::span<const NamedJudge> judges();
    std::vector<table::Part*> parts() { return {&outcome}; }
    Figure thumbnail() const;
    // The window was dragged from one place on the axis to another: the scale follows, or, where the scale is
    // made from the tensor, the margin by whole powers of two.
    void slide(double from, double to);

    CastSpec params;
    table::Computed<CastSpec, Outcome> outcome{"", [this] { return params; }, Compute(),
                                               table::When::at_once};

  private:
    std::vector<Figure> figures() const;  // "window", "margin" and "loss"
    std::vector<table::MetricRow> metrics() const;
};
using WindowLab = table::TableLab<Window>;

// The figures of an outcome; model_figures.cpp.
Figure window_figure(const Outcome& outcome);
Figure margin_figure(const Outcome& outcome);
Figure loss_figure(const Outcome& outcome);
std::string finding(const Outcome& outcome);  // the sentence over the window
Range axis_of(const Outcome& outcome);        // of |x|
// The scale in words, to be read after "scale = ": "448 / amax / 2^3", "1, because amax is 0"; model.cpp.
std::string scale_rule(const Outcome& outcome);

}  // namespace fp8lab::window
