#include "labs/ruler/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/threads/parallel.h"
#include "labs/seeded.h"

namespace fp8lab::ruler {

using table::Experiment, table::MetricRow, table::Row;

namespace {

constexpr double kMinScale = 0x1p-24, kMaxScale = 0x1p24;

std::vector<FormatInfo> chosen_formats(const Params& params) {
    std::vector<FormatInfo> out;
    for (const std::string& name : {params.first, params.second, params.third, params.fourth}) {
        const auto same = [&](const FormatInfo& format) { return format.name == name; };
        if (name != "none" && std::none_of(out.begin(), out.end(), same)) out.push_back(find_format(name));
    }
    return out;
}

// The values of a user's tensor that have a place on a ruler. Of many elements it takes every k-th and the largest,
// so that the scale can be dragged.
std::vector<float> thinned(std::vector<float> values) {
    constexpr std::size_t kMost = 1 << 18;
    if (values.size() <= kMost) return values;
    const auto smaller = [](float a, float b) { return std::fabs(a) < std::fabs(b); };
    std::vector<float> out = {*std::ranges::max_element(values, smaller)};
    const std::size_t every = (values.size() + kMost - 1) / kMost;
    for (std::size_t i = every - 1; i < values.size(); i += every) out.push_back(values[i]);
    return out;
}

// Fixed by the data and the formats at scale 1.
Range axis_range(const Params& params, const std::vector<FormatInfo>& chosen,
                 const std::vector<float>& tensor) {
    double largest = 0;
    for (const float x : tensor) largest = std::max(largest, static_cast<double>(std::fabs(x)));
    if (params.axis == "linear") return {0, largest > 0 ? 1.25 * largest : 1.07 * max_finite(chosen.front())};
    // Log: powers of two around data and rulers; of the data no more than the upper 24 binades.
    double lo = largest > 0 ? largest : max_finite(chosen.front()), hi = lo;
    for (const float x : tensor)
        if (x != 0) lo = std::min(lo, std::max(static_cast<double>(std::fabs(x)), std::ldexp(largest, -24)));
    for (const FormatInfo& format : chosen) {
        lo = std::min(lo, min_subnormal(format));
        hi = std::max(hi, max_finite(format));
    }
    return {std::ldexp(1.0, std::ilogb(lo) - 1), std::ldexp(1.0, std::ilogb(hi) + 2)};
}

std::vector<double> bin_edges(const Params& params, Range axis) {
    std::vector<double> out;
    if (params.axis == "linear") {
        constexpr int kBins = 64;
        for (int i = 0; i <= kBins; ++i) out.push_back(axis.hi * i / kBins);
        return out;
    }
    // Half binades.
    for (int k = 2 * std::ilogb(axis.lo); k <= 2 * std::ilogb(axis.hi); ++k)
        out.push_back(std::exp2(k / 2.0));
    return out;
}

std::vector<double> fixed_point_marks(const FormatInfo& format, double scale, Range axis) {
    constexpr double kMost = 4096;  // denser marks than px are one solid line
    const double step = std::ldexp(1.0, -format.mantissa_bits) / scale;
    const double end = std::min(axis.hi, max_finite(format) / scale);
    std::vector<double> out;
    if (end / step <= kMost)
        for (int i = 1; i * step <= end; ++i) out.push_back(i * step);
    return out;
}

}  // namespace

const LabInfo Ruler::kInfo = {"ruler",
                              2,
                              "Uneven ruler",
                              "The uneven ruler",
                              "A format has few values. Where are they, and where is your tensor?",
                              15,
                              "L1",
                              "",
                              "it compares the values of formats, and no layer is cast"};

std::span<const Experiment<Ruler>> Ruler::experiments() {
    static constexpr std::array<Experiment<Ruler>, 1> kOne = {
        {{.figures = &Ruler::figures, .metrics = &Ruler::metrics}}};
    return kOne;
}

namespace {

// Controls of a tensor that is not there, or of another distribution, are not shown.
bool is_own(const Params& params) {  // from the Workbench, or dropped on the window
    return !params.tensor.file.empty();
}
bool is_drawn(const Params& params) { return !is_own(params) && params.tensor.kind != "none"; }

std::vector<Row> first_tier(Params& params) {
    return {
        {choice(
            {.name = "first",
             .label = "Ruler",
             .help = "The format whose values are the marks. The histogram shows the cast to this format."},
            &params.first, format_choices(is_element))},
        {choice({.name = "second", .label = "Compare with", .help = "A second ruler on the same axis."},
                &params.second, format_choices(is_element, {{"none", "none"}}))},
        {choice(
            {.name = "axis",
             .label = "Axis",
             .help =
                 "Linear: most values are near 0. Log: the relative spacing is even. Binades: one row per "
                 "power of two."},
            &params.axis, {{"linear", "linear"}, {"log", "log"}, {"binades", "binades"}})},
        {.field = choice({.name = "tensor",
                          .label = "Tensor",
                          .help = "What is cast: random numbers from this distribution."},
                         &params.tensor.kind,
                         {{"none", "none"},
                          {"normal", "Gaussian"},
                          {"lognormal", "log-normal"},
                          {"uniform", "uniform"},
                          {"laplace", "Laplace"}}),
         .shown = !is_own(params)},
        {.field = tensor_field(params.tensor, "size"), .shown = is_drawn(params)},
        {number(
            {.name = "scale",
             .label = "Scale",
             .te_name = "scale",
             .help =
                 "The tensor is multiplied by it before the cast. The handle on the ruler does the same."},
            &params.scale, kMinScale, kMaxScale, true)},
    };
}

std::vector<Row> second_tier(Params& params) {
    const bool own = is_own(params), drawn = is_drawn(params);
    return {
        {choice({.name = "third",
                 .label = "Third ruler",
                 .help = "One more format on the same axis.",
                 .more = true},
                &params.third, format_choices(is_element, {{"none", "none"}}))},
        {choice({.name = "fourth",
                 .label = "Fourth ruler",
                 .help = "One more format on the same axis.",
                 .more = true},
                &params.fourth, format_choices(is_element, {{"none", "none"}}))},
        {toggle(
            {.name = "fixed_point",
             .label = "Notebook's fixed point",
             .help = "The marks of round(x * 2^M) / 2^M, which a widely used FP8 notebook calls FP8: evenly "
                     "spaced, and nothing between 0 and 2^-M.",
             .more = true},
            &params.fixed_point)},
        {.field = tensor_field(params.tensor, "sigma", true),
         .shown = !own && params.tensor.kind == "lognormal"},
        {.field = integer({.name = "elements",
                           .label = "Elements",
                           .help = "How many numbers the tensor has.",
                           .more = true},
                          &params.tensor.cols, 256, 1 << 18, true),
         .shown = drawn},
        {.field = tensor_field(params.tensor, "seed", true), .shown = drawn},
        {.field = tensor_field(params.tensor, "file", true), .shown = own},
    };
}

}  // namespace

std::vector<Row> Ruler::rows(Params& params) {
    return table::join({
        first_tier(params),
        second_tier(params),
        {
            {number(
                {.name = "brush_lo",
                 .label = "Interval from",
                 .help =
                     "Left end of the interval in which the marks are counted. It belongs to the interval.",
                 .hidden = true},
                &params.brush_lo, 0, 1e9)},
            {number({.name = "brush_hi",
                     .label = "Interval to",
                     .help = "Right end of the interval. It does not belong to it.",
                     .hidden = true},
                    &params.brush_hi, 0, 1e9)},
        },
    });
}

Outcome Compute::operator()(const Params& params) {
    Outcome out;
    if (drawn_ != params.tensor) {
        Tensor drawn = make_tensor(params.tensor);
        excluded_ = drawn.excluded;
        tensor_ = thinned(std::move(drawn.values));
        drawn_ = params.tensor;
    }
    out.tensor = tensor_;
    out.excluded = excluded_;
    const std::vector<FormatInfo> chosen = chosen_formats(params);
    out.axis = axis_range(params, chosen, out.tensor);
    out.lanes.assign(chosen.size(), {});
    const auto fill = [&](const FormatInfo& format, Lane& lane) {
        lane.format = format;
        lane.role = format.role;
        lane.marks = positive_marks(format, params.scale);
        lane.half = half_of(lane.marks);
        lane.brushed = interval(lane.marks, params.brush_lo, params.brush_hi);
        lane.cast = cast_report(format, out.tensor, params.scale);
    };
    // Computed in the frame of the edit, one core per lane.
    parallel_for(chosen.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) fill(chosen[i], out.lanes[i]);
    });
    const Lane& first = out.lanes.front();
    out.window = {first.marks.front(), first.marks.back()};
    const double lo = out.window.lo, hi = out.window.hi;
    out.handle = params.axis == "linear" ? (lo + hi) / 2 : std::sqrt(lo * hi);
    out.data = histogram(out.tensor, first.cast.fates, bin_edges(params, out.axis));
    out.fixed_point.clear();
    if (params.fixed_point) out.fixed_point = fixed_point_marks(first.format, params.scale, out.axis);
    return out;
}

std::vector<Figure> Ruler::figures() const {
    std::vector<Figure> out = {ruler_figure(*outcome, params), gap_figure(*outcome, params)};
    if (outcome->tensor.empty()) return out;
    out.push_back(data_figure(*outcome, params));
    return has_effect(params.tensor, "seed") ? of_seed(params.tensor.seed, std::move(out), {"data"}) : out;
}

std::vector<MetricRow> Ruler::metrics() const {
    std::vector<MetricRow> out = {{"scale", "", [this] { return params.scale; }}};
    for (const Lane& lane : outcome->lanes) {
        const auto add = [&](std::string_view name, double value, std::string unit = {}) {
            out.push_back(
                {fmt::format("{}.{}", lane.format.name, name), std::move(unit), [value] { return value; }});
        };
        const auto count = [](std::int64_t n) { return static_cast<double>(n); };
        add("positive_values", count(lane.half.total));
        add("half_lies_below", lane.half.at);
        add("values_below_half", count(lane.half.below));
        add("interval_values", count(lane.brushed.count));
        add("interval_min_gap", lane.brushed.min_gap);
        add("interval_max_gap", lane.brushed.max_gap);
        add("missed_by_fixed_point", count(missed_by_fixed_point(lane.format)));
        if (outcome->tensor.empty()) continue;
        const CastStats& stats = lane.cast.stats;
        add("elements", count(stats.n));
        add("amax", static_cast<double>(stats.amax));
        add("underflow_pct", stats.underflow_pct(), "%");
        add("lost_l1_pct", stats.lost_l1_pct(), "%");
        add("lost_energy_pct", stats.lost_energy_pct(), "%");
        add("overflow_pct", stats.overflow_pct(), "%");
        add("normal_pct", lane.cast.normal_pct, "%");
        add("sqnr_db", stats.sqnr_db(), "dB");
    }
    return out;
}

void Ruler::slide(double from, double to) {
    if (!(from > 0 && to > 0)) return;
    params.scale = std::clamp(params.scale * from / to, kMinScale, kMaxScale);
    outcome.refresh(true, true);
}

void Ruler::brush(double lo, double hi) {
    params.brush_lo = std::max(0.0, std::min(lo, hi));
    params.brush_hi = std::max(0.0, std::max(lo, hi));
    outcome.refresh(true, true);
}

LabEntry entry() { return entry_of<RulerLab>(Ruler::kInfo); }

}  // namespace fp8lab::ruler
