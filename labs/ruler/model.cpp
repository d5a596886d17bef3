#include "labs/ruler/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/threads/parallel.h"
#include "labs/seeded.h"

namespace fp8lab::ruler {

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

// Of a tensor of one's own: what has a place on a ruler, and of many elements every k-th and the largest, so that the
// scale can be dragged.
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

namespace {
constexpr LabInfo kInfo = {"ruler",
                           2,
                           "Uneven ruler",
                           "The uneven ruler",
                           "A format has few values. Where are they, and where is your tensor?",
                           15,
                           "L1"};
}  // namespace

const LabInfo& RulerLab::info() const { return kInfo; }

std::vector<Field> RulerLab::fields_of(Params& params) {
    return {
        choice(
            {.name = "first",
             .label = "Ruler",
             .help = "The format whose values are the marks. The histogram shows the cast to this format."},
            &params.first, format_choices(is_element)),
        choice({.name = "second", .label = "Compare with", .help = "A second ruler on the same axis."},
               &params.second, format_choices(is_element, {{"none", "none"}})),
        choice({.name = "axis",
                .label = "Axis",
                .help =
                    "Linear: most values are near 0. Log: the relative spacing is even. Binades: one row per "
                    "power of two."},
               &params.axis, {{"linear", "linear"}, {"log", "log"}, {"binades", "binades"}}),
        choice({.name = "tensor",
                .label = "Tensor",
                .help = "What is cast: random numbers from this distribution."},
               &params.tensor.kind,
               {{"none", "none"},
                {"normal", "Gaussian"},
                {"lognormal", "log-normal"},
                {"uniform", "uniform"},
                {"laplace", "Laplace"}}),
        tensor_field(params.tensor, "size"),
        number({.name = "scale",
                .label = "Scale",
                .te_name = "scale",
                .help =
                    "The tensor is multiplied by it before the cast. The handle on the ruler does the same."},
               &params.scale, kMinScale, kMaxScale, true),
        choice({.name = "third",
                .label = "Third ruler",
                .help = "One more format on the same axis.",
                .more = true},
               &params.third, format_choices(is_element, {{"none", "none"}})),
        choice({.name = "fourth",
                .label = "Fourth ruler",
                .help = "One more format on the same axis.",
                .more = true},
               &params.fourth, format_choices(is_element, {{"none", "none"}})),
        toggle(
            {.name = "fixed_point",
             .label = "Notebook's fixed point",
             .help = "The marks of round(x * 2^M) / 2^M, which a widely used FP8 notebook calls FP8: evenly "
                     "spaced, and nothing between 0 and 2^-M.",
             .more = true},
            &params.fixed_point),
        tensor_field(params.tensor, "sigma", true),
        integer({.name = "elements",
                 .label = "Elements",
                 .help = "How many numbers the tensor has.",
                 .more = true},
                &params.tensor.cols, 256, 1 << 18, true),
        tensor_field(params.tensor, "seed", true),
        tensor_field(params.tensor, "file", true),
        number(
            {.name = "brush_lo",
             .label = "Interval from",
             .help = "Left end of the interval in which the marks are counted. It belongs to the interval.",
             .hidden = true},
            &params.brush_lo, 0, 1e9),
        number({.name = "brush_hi",
                .label = "Interval to",
                .help = "Right end of the interval. It does not belong to it.",
                .hidden = true},
               &params.brush_hi, 0, 1e9),
    };
}

void RulerLab::update() {
    if (drawn_ != params_.tensor) {
        Tensor drawn = make_tensor(params_.tensor);
        outcome_.excluded = drawn.excluded;
        outcome_.tensor = thinned(std::move(drawn.values));
        drawn_ = params_.tensor;
    }
    const std::vector<FormatInfo> chosen = chosen_formats(params_);
    outcome_.axis = axis_range(params_, chosen, outcome_.tensor);
    outcome_.lanes.assign(chosen.size(), {});
    const auto fill = [&](const FormatInfo& format, Lane& lane) {
        lane.format = format;
        lane.role = format.role;
        lane.marks = positive_marks(format, params_.scale);
        lane.half = half_of(lane.marks);
        lane.brushed = interval(lane.marks, params_.brush_lo, params_.brush_hi);
        lane.cast = cast_report(format, outcome_.tensor, params_.scale);
    };
    // In the frame of the edit: a core a lane.
    parallel_for(chosen.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) fill(chosen[i], outcome_.lanes[i]);
    });
    const Lane& first = outcome_.lanes.front();
    outcome_.window = {first.marks.front(), first.marks.back()};
    const double lo = outcome_.window.lo, hi = outcome_.window.hi;
    outcome_.handle = params_.axis == "linear" ? (lo + hi) / 2 : std::sqrt(lo * hi);
    outcome_.data = histogram(outcome_.tensor, first.cast.fates, bin_edges(params_, outcome_.axis));
    outcome_.fixed_point.clear();
    if (params_.fixed_point)
        outcome_.fixed_point = fixed_point_marks(first.format, params_.scale, outcome_.axis);
}

std::vector<Figure> RulerLab::figures() const {
    std::vector<Figure> out = {ruler_figure(outcome_, params_), gap_figure(outcome_, params_)};
    if (outcome_.tensor.empty()) return out;
    out.push_back(data_figure(outcome_, params_));
    return has_effect(drawn_, "seed") ? of_seed(drawn_.seed, std::move(out), {"data"}) : out;
}

std::vector<Metric> RulerLab::metrics() const {
    std::vector<Metric> out = {{.name = "scale", .value = params_.scale}};
    const auto count = [](std::int64_t n) { return static_cast<double>(n); };
    for (const Lane& lane : outcome_.lanes) {
        const auto add = [&](std::string_view name, double value, std::string unit = {}) {
            out.push_back({.name = fmt::format("{}.{}", lane.format.name, name),
                           .value = value,
                           .unit = std::move(unit)});
        };
        add("positive_values", count(lane.half.total));
        add("half_lies_below", lane.half.at);
        add("values_below_half", count(lane.half.below));
        add("interval_values", count(lane.brushed.count));
        add("interval_min_gap", lane.brushed.min_gap);
        add("interval_max_gap", lane.brushed.max_gap);
        add("missed_by_fixed_point", count(missed_by_fixed_point(lane.format)));
        if (outcome_.tensor.empty()) continue;
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

void RulerLab::reset() { params_ = {}; }

void RulerLab::slide(double from, double to) {
    if (!(from > 0 && to > 0)) return;
    params_.scale = std::clamp(params_.scale * from / to, kMinScale, kMaxScale);
    update();
}

void RulerLab::brush(double lo, double hi) {
    params_.brush_lo = std::max(0.0, std::min(lo, hi));
    params_.brush_hi = std::max(0.0, std::max(lo, hi));
    update();
}

LabEntry entry() { return entry_of<RulerLab>(kInfo); }

}  // namespace fp8lab::ruler
