#include "labs/example/model.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/base/units.h"
#include "core/formats/codec.h"

namespace fp8lab::example {

const LabInfo Example::kInfo = {"example", 0, "Example", "How far is the next number?", "A format has gaps.",
                                5};

std::vector<table::Row> Example::rows(Params& params) {
    return {{choice({.name = "format", .label = "Format", .help = "The format whose values are taken."},
                    &params.format, format_choices(is_element))},
            {number({.name = "x", .label = "Number x", .help = "The gap around this number is measured."},
                    &params.x, 0x1p-9, 448, true)}};
}

std::span<const table::Experiment<Example>> Example::experiments() {
    static constexpr std::array<table::Experiment<Example>, 1> kOne = {
        {{.figures = &Example::figures, .metrics = &Example::metrics}}};
    return kOne;
}

Outcome compute(const Params& params) {
    Outcome out;
    out.of = params;
    for (const CodeValue& one : positive_values(find_format(params.format)))
        if (one.value > 0) out.values.push_back(one.value);
    for (const double value : out.values) {
        if (value > params.x) {
            out.above = value;
            break;
        }
        out.below = value;
    }
    return out;
}

std::vector<Figure> Example::figures() const {
    Figure figure;
    figure.id = "gaps";
    figure.title = std::isnan(outcome->above)
                       ? fmt::format("{} is at or above the largest value", screen_number(outcome->of.x))
                       : fmt::format("Around {} the gap is {}", screen_number(outcome->of.x),
                                     screen_number(outcome->above - outcome->below));
    figure.x = {.label = "|x|", .scale = Scale::log2};
    figure.y = {.label = "gap", .scale = Scale::log2};
    std::vector<double> gaps;
    for (std::size_t i = 0; i + 1 < outcome->values.size(); ++i)
        gaps.push_back(outcome->values[i + 1] - outcome->values[i]);
    std::vector<double> from(outcome->values.begin(), outcome->values.end() - 1);
    figure.line(outcome->of.format, data(std::move(from)), data(std::move(gaps)), {.step = true});
    figure.vline("x", outcome->of.x, {.color = {Role::axis}, .in_legend = false});
    return {figure};
}

std::vector<table::MetricRow> Example::metrics() const {
    return {table::known("below", outcome->below), table::known("gap", outcome->above - outcome->below)};
}

}  // namespace fp8lab::example
