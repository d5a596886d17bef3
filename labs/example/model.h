// The smallest lab, to copy: one number, the gap around it, one figure. It is built and tested, and not in labs/list.h.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/formats/format.h"
#include "labs/table/table_lab.h"

namespace fp8lab::example {

struct Params {
    std::string format = "e4m3";
    double x = 17;
    bool operator==(const Params&) const = default;
};

struct Outcome {
    Params of;
    // The values of the format at or below |x|, and above it; NaN from the largest on.
    double below = 0, above = std::numeric_limits<double>::quiet_NaN();
    std::vector<double> values;  // positive ones
};
Outcome compute(const Params& params);

struct Example {
    static const LabInfo kInfo;
    using Params = example::Params;
    static std::vector<table::Row> rows(Params& params);
    static std::span<const table::Experiment<Example>> experiments();
    std::vector<table::Part*> parts() { return {&outcome}; }
    Figure thumbnail() const { return figures().front(); }

    Params params;
    table::Computed<Params, Outcome> outcome{"", [this] { return params; }, compute, table::When::in_frame};

  private:
    std::vector<Figure> figures() const;  // "gaps"
    std::vector<table::MetricRow> metrics() const;
};
using ExampleLab = table::TableLab<Example>;

}  // namespace fp8lab::example
