#include "labs/error/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/scaling/quantizer.h"
#include "labs/seeded.h"

namespace fp8lab::error {

using table::Experiment;

namespace {

bool is_narrow_float(const FormatInfo& format) { return is_element(format) && format.kind == Kind::floating; }

std::vector<Rounder> chosen_rounders(const Params& params) {
    std::vector<Rounder> out;
    if (params.blind) {
        for (const std::string_view id : blind_order(params.tensor.seed))
            out.push_back(id == "notebook" ? notebook_of(find_format("e4m3")) : rounder_of(id));
        return out;
    }
    out.push_back(rounder_of(params.first));
    if (params.second != "none" && params.second != params.first) out.push_back(rounder_of(params.second));
    if (params.overlay == "int8" || params.overlay == "both") out.push_back(rounder_of("int8"));
    if (params.overlay == "notebook" || params.overlay == "both")
        out.push_back(notebook_of(find_format(params.first)));
    return out;
}

float scale_of(const Rounder& rounder, const Params& params, float amax) {
    if (params.scaling == "one" || !(amax > 0) || !std::isfinite(amax)) return 1;
    return static_cast<float>(rounder.largest()) / amax;
}

Range axis_of(const Params& params, float amax) {
    if (params.scaling == "one" || !(amax > 0) || !std::isfinite(amax)) return {1e-4, 1e3};
    return {1e-8 * static_cast<double>(amax), 4 * static_cast<double>(amax)};
}

Row measure(const Rounder& rounder, float scale, const Tensor& tensor, std::vector<float>& rounded) {
    Row row{rounder, scale, {}};
    if (!rounder.notebook) {
        const CastPlan plan{.format = &row.rounder.format, .scaled = true};
        const QuantizeResult result =
            quantize(plan, tensor.values, rounded,
                     {.rows = tensor.rows, .cols = tensor.cols, .tensor_scale = scale, .with_errors = true});
        row.metrics = error_metrics(result.stats, result.errors);
        return row;
    }
    round_all(rounder, tensor.values, rounded, scale);
    const std::array scales = {scale}, tops = {static_cast<float>(rounder.largest()) / scale};
    row.metrics = error_metrics(measure_cast(tensor.values, rounded, scales, rounder.overflow()),
                                measure_errors(tensor.values, rounded, tops));
    return row;
}

// What the first row's cast did to which magnitudes.
void count_fates(Outcome& outcome, std::span<const float> rounded) {
    std::vector<float> lost, clipped;
    const Row& first = outcome.rows.front();
    const OverflowThreshold limit = first.rounder.overflow();
    for (std::size_t i = 0; i < rounded.size(); ++i) {
        const float x = outcome.tensor.values[i];
        if (x != 0 && rounded[i] == 0) lost.push_back(x);
        const auto scaled = static_cast<double>(std::fabs(x * first.scale));
        if (limit.is_passed_by(scaled)) clipped.push_back(x);
    }
    outcome.all.add(outcome.tensor.values);
    outcome.lost.add(lost);
    outcome.clipped.add(clipped);
}

constexpr std::array kColumns = {
    Column{"sqnr_db", "SQNR dB", "SQNR dB", [](const ErrorMetrics& m) { return m.sqnr_db; }, true},
    Column{"rel_l2", "relative L2 %", "L2 %", [](const ErrorMetrics& m) { return 100 * m.rel_l2; }, false},
    Column{"mean_rel", "mean relative %", "mean %", [](const ErrorMetrics& m) { return 100 * m.mean_rel; },
           false},
    Column{"max_rel", "worst relative %", "worst %", [](const ErrorMetrics& m) { return 100 * m.max_rel; },
           false},
    Column{"underflow_pct", "becomes 0 %", "zero %", [](const ErrorMetrics& m) { return m.underflow_pct; },
           false},
    Column{"overflow_pct", "saturates %", "sat %", [](const ErrorMetrics& m) { return m.overflow_pct; },
           false},
};

}  // namespace

std::span<const Column> columns() { return kColumns; }

std::optional<std::size_t> best_row(const Outcome& outcome, const Column& column) {
    std::optional<std::size_t> best;
    bool shared = false;
    const auto value = [&](std::size_t i) {
        const double v = column.value(outcome.rows[i].metrics);
        return column.larger_is_better ? -v : v;
    };
    for (std::size_t i = 0; i < outcome.rows.size(); ++i) {
        if (std::isnan(value(i))) return std::nullopt;
        if (best && value(i) == value(*best)) shared = true;
        if (!best || value(i) < value(*best)) best = i, shared = false;
    }
    return shared || outcome.rows.size() < 2 ? std::nullopt : best;
}

std::array<std::string_view, 3> blind_order(int seed) {
    std::array<std::string_view, 3> order = {"e4m3", "e5m2", "notebook"};
    for (int i = 0; i < seed % 6; ++i) std::next_permutation(order.begin(), order.end());
    return order;
}

Outcome compute(const Params& params) {
    Outcome outcome;
    outcome.params = params;
    outcome.tensor = make_tensor(params.tensor);
    const float largest = amax(outcome.tensor.values);
    outcome.axis = axis_of(params, largest);
    std::vector<float> rounded(outcome.tensor.values.size());
    for (const Rounder& rounder : chosen_rounders(params)) {
        const float scale = scale_of(rounder, params, largest);
        outcome.curves.push_back(sweep(rounder, scale, outcome.axis));
        outcome.rows.push_back(measure(rounder, scale, outcome.tensor, rounded));
        if (outcome.rows.size() == 1) count_fates(outcome, rounded);
    }
    return outcome;
}

const LabInfo RoundingError::kInfo = {
    "error",
    3,
    "Rounding error",
    "How wrong is a rounded number?",
    "Every cast rounds. How large is the error, and where does the format end?",
    20,
    "L1",
    "",
    "it shows the error of single numbers, and no layer is cast"};

std::span<const Experiment<RoundingError>> RoundingError::experiments() {
    static constexpr std::array<Experiment<RoundingError>, 1> kOne = {
        {{.figures = &RoundingError::figures, .metrics = &RoundingError::metrics}}};
    return kOne;
}

std::vector<table::Row> RoundingError::rows(Params& params) {
    TensorSpec& tensor = params.tensor;
    Field elements = tensor_field(tensor, "cols", true);
    elements.info.label = "Elements";
    elements.info.help = "How many numbers the tensor has.";
    return {
        {choice({.name = "first", .label = "Format", .help = "The format that is rounded to."}, &params.first,
                format_choices(is_narrow_float))},
        {choice({.name = "second", .label = "Compare with", .help = "A second format for the same numbers."},
                &params.second, format_choices(is_narrow_float, {{"none", "none"}}))},
        {choice(
            {.name = "overlay",
             .label = "Overlay",
             .help =
                 "INT8, whose steps all have the same size, and round(x * 2^M) / 2^M, which a widely used "
                 "FP8 notebook calls by the format’s name."},
            &params.overlay,
            {{"none", "none"}, {"int8", "INT8"}, {"notebook", "notebook"}, {"both", "both"}})},
        {.field = tensor_field(tensor, "tensor"), .shown = has_effect(tensor, "tensor")},
        {.field = tensor_field(tensor, "sigma"), .shown = has_effect(tensor, "sigma")},
        {choice(
            {.name = "scaling",
             .label = "Scale",
             .te_name = "scale",
             .help = "1: the numbers as they are. amax: multiplied so that the largest becomes the format’s "
                     "largest value, as current scaling does."},
            &params.scaling, {{"one", "1"}, {"amax", "amax"}})},
        {.field = tensor_field(tensor, "size", true), .shown = has_effect(tensor, "size")},
        {.field = elements, .shown = has_effect(tensor, "cols")},
        {.field = tensor_field(tensor, "outliers", true), .shown = has_effect(tensor, "outliers")},
        {.field = tensor_field(tensor, "outlier_ratio", true), .shown = has_effect(tensor, "outlier_ratio")},
        {.field = tensor_field(tensor, "seed", true), .shown = has_effect(tensor, "seed")},
        {.field = tensor_field(tensor, "file", true), .shown = has_effect(tensor, "file")},
        {number({.name = "at",
                 .label = "Marker",
                 .help = "The number whose rounding is shown in full.",
                 .hidden = true},
                &params.at, 1e-12, 1e12, true)},
        {toggle({.name = "blind",
                 .label = "Blind",
                 .help = "Three curves without names; the seed decides their order.",
                 .hidden = true},
                &params.blind)},
        {toggle({.name = "levels",
                 .label = "Levels",
                 .help = "Shows the height of the peaks. Off where an exercise asks for it.",
                 .hidden = true},
                &params.levels)},
    };
}

std::vector<Figure> RoundingError::figures() const {
    Figure error = error_figure(*outcome);
    if (!outcome->params.blind)
        error.vline("marker", params.at, {.color = {Role::axis}, .width = 1, .in_legend = false});
    std::vector<Figure> out = {std::move(error), data_figure(*outcome)};
    const TensorSpec& drawn = outcome->params.tensor;
    return has_effect(drawn, "seed") ? of_seed(drawn.seed, std::move(out), {"data"}) : out;
}

Figure RoundingError::thumbnail() const {
    Figure figure = error_figure(*outcome);
    std::erase_if(figure.series,
                  [](const Series& series) { return std::holds_alternative<TextMark>(series.shape); });
    return figure;
}

std::vector<table::MetricRow> RoundingError::metrics() const {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    std::vector<table::MetricRow> out;
    for (std::size_t i = 0; i < outcome->rows.size(); ++i) {
        const Row& row = outcome->rows[i];
        const Curve& curve = outcome->curves[i];
        const auto add = [&](std::string_view name, double value, std::string unit = {}) {
            out.push_back(table::known(row.rounder.id + "." + std::string(name), value, std::move(unit)));
        };
        add("scale", static_cast<double>(row.scale));
        add("at_pct", round_marker(row, params.at).percent, "%");
        const bool has_normal = curve.normal.lo < curve.normal.hi;
        add("worst_normal_pct", has_normal ? curve.worst_pct : kNone, "%");
        add("mean_normal_pct", has_normal ? curve.mean_pct : kNone, "%");
        add("sqnr_db", row.metrics.sqnr_db, "dB");
        add("rel_l2", row.metrics.rel_l2);
        add("mse", row.metrics.mse);
        add("mean_rel", row.metrics.mean_rel);
        add("max_rel", row.metrics.max_rel);
        add("cosine", row.metrics.cosine);
        add("underflow_pct", row.metrics.underflow_pct, "%");
        add("lost_l1_pct", row.metrics.lost_l1_pct, "%");
        add("lost_energy_pct", row.metrics.lost_energy_pct, "%");
        add("overflow_pct", row.metrics.overflow_pct, "%");
        add("max_code_pct", row.metrics.max_code_pct, "%");
    }
    const ErrorMetrics& tensor = outcome->rows.front().metrics;
    out.push_back(table::known("amax", tensor.amax));
    out.push_back(table::known("amin_nonzero", tensor.amin_nonzero));
    out.push_back(table::known("dynamic_range_log2", tensor.dynamic_range_log2));
    out.push_back(table::known("nonfinite", static_cast<double>(outcome->tensor.excluded.not_finite())));
    return out;
}

LabEntry entry() { return entry_of<ErrorLab>(RoundingError::kInfo); }

}  // namespace fp8lab::error
