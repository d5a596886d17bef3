#include "labs/live/histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "labs/live/looks.h"

namespace fp8lab::live {
namespace {

std::string_view class_name(TensorClass tensor) {
    switch (tensor) {
        case TensorClass::x:
            return "Input";
        case TensorClass::w:
            return "Weight";
        case TensorClass::dy:
            return "Gradient";
    }
    return "";
}

double share(std::int64_t count, std::int64_t n) {
    return n > 0 ? 100.0 * static_cast<double>(count) / static_cast<double>(n) : 0;
}

std::string histogram_title(const History& history, const OperandSpec& tensor, const TensorView& view) {
    const std::string& name = tensor.name;
    const double lost = share(view.after.zeros - view.before.zeros, view.before.n);
    if (view.before.nonfinite > 0) return name + " is not finite";
    if (lost >= 1)
        return fmt::format("The cast turns {} % of {}’s elements into 0", format_number(lost, 3, true), name);
    const auto& arms = history.arms();
    const TensorTrack* track = arms.back().find(view.id);
    if (arms.size() > 1) track = arms[1].find(view.id);
    if (track && !track->overflow_at.empty() && track->overflow_at.back() == view.step) {
        return name + " is saturated in this step";
    }
    return fmt::format("{} {} before and after the cast", class_name(tensor.tensor), name);
}

// The binades to show: the data and the format's window, then room for the bar of zeros on the left. Bounds
// fall between two multiples of 8, so that the first tick label stands right of the zeros.
struct Binades {
    int lo, hi, zero;
};
Binades binades(const TensorView& view) {
    constexpr double kVisiblePct = 0.02;  // a bin below that is less than a pixel high
    int lo = Log2Histogram::kBins, hi = 0;
    for (int b = 0; b < Log2Histogram::kBins; ++b) {
        const auto bin = static_cast<std::size_t>(b);
        if (share(view.before.counts[bin] + view.after.counts[bin], view.before.n) < kVisiblePct) continue;
        lo = std::min(lo, b);
        hi = std::max(hi, b + 1);
    }
    if (hi == 0) return {-17, 8, -23};
    lo += Log2Histogram::kLowest;
    hi += Log2Histogram::kLowest;
    const int data_lo = lo, data_hi = hi;
    if (view.format && std::isfinite(view.scale)) {
        lo = std::min(lo, static_cast<int>(std::floor(
                              std::log2(min_subnormal(*view.format) / static_cast<double>(view.scale)))));
        hi = std::max(hi, static_cast<int>(std::ceil(
                              std::log2(max_finite(*view.format) / static_cast<double>(view.scale)))));
    }
    // A window that goes on is cut off: BF16's begins 130 binades below what is in it.
    constexpr int kMost = 56, kAbove = 8;
    lo = std::max(lo, std::min(data_lo, data_hi + kAbove - kMost));
    hi = std::min({hi + 2, data_hi + kAbove, lo + kMost});
    const int first_tick = 8 * static_cast<int>(std::floor(lo / 8.0));
    return {first_tick - 1, hi, first_tick - 7};
}

void add_bars(Figure& figure, const TensorView& view, const Binades& range, Role role, bool named) {
    std::vector<double> edges, before, after;
    for (int e = range.lo; e < range.hi; ++e) {
        edges.push_back(std::ldexp(1.0, e));
        const int bin = e - Log2Histogram::kLowest;
        const bool counted = bin >= 0 && bin < Log2Histogram::kBins;
        before.push_back(counted ? share(view.before.counts[std::size_t(bin)], view.before.n) : 0);
        after.push_back(counted ? share(view.after.counts[std::size_t(bin)], view.after.n) : 0);
    }
    edges.push_back(std::ldexp(1.0, range.hi));
    const Data shared_edges = data(std::move(edges));
    const double lost = share(view.after.zeros - view.before.zeros, view.before.n);
    const double top =
        std::max({*std::ranges::max_element(before), *std::ranges::max_element(after), lost, 1.0});
    figure.y.range = Range{0, 1.15 * top};
    if (view.format) {
        figure.bars(named ? "after, " + std::string(view.format->label) : "after", shared_edges,
                    data(std::move(after)), {.color = {role, Tone::fill}});
    }
    figure.bars("before", shared_edges, data(std::move(before)), {.color = {Role::truth}, .width = 1.5F},
                true);
    const double zero_lo = std::ldexp(1.0, range.zero), zero_hi = std::ldexp(1.0, range.zero + 4);
    figure.bars("became 0", data({zero_lo, zero_hi}), data({lost}),
                {.color = {Role::under, Tone::fill}, .in_legend = false});
    figure.add("", TextMark{zero_lo, lost, format_number(lost, 3, true) + " %", Anchor::left, false, 0, -12},
               {.color = {Role::text}});
    figure.add("", TextMark{zero_lo, 0, "0", Anchor::left, false, 0, 18}, {.color = {Role::muted}});
    // What was 0 before the cast has no binade either: a ReLU makes half of a gradient 0.
    const double before_zeros = share(view.before.zeros, view.before.n);
    if (before_zeros > 0)
        figure.add("",
                   TextMark{zero_lo, lost, format_number(before_zeros, 3, true) + " % were 0 before",
                            Anchor::left, false, 0, -32},
                   {.color = {Role::muted}});
}

}  // namespace

void add_view(Figure& figure, const TensorView& view, Role role, bool named) {
    const Binades range = binades(view);
    figure.x.range = Range{std::ldexp(1.0, range.zero), std::ldexp(1.0, range.hi)};
    if (view.format && std::isfinite(view.scale)) {
        figure.xspan(named ? std::string(view.format->label) + " window" : "window",
                     min_subnormal(*view.format) / static_cast<double>(view.scale),
                     max_finite(*view.format) / static_cast<double>(view.scale), {.color = {role}});
    }
    add_bars(figure, view, range, role, named);
}

Figure histogram_figure(const History& history, const TrainSpec& spec, TensorId shown,
                        std::string_view none) {
    const ModelPlan plan = model_plan(spec);
    const auto& arms = history.arms();
    const std::size_t arm = arms.size() > 1 ? 1 : 0;
    Figure figure{.id = "histogram", .title = {}};
    figure.x = {.label = "|" + plan.tensor(shown).name + "|",
                .scale = Scale::log2,
                .range = Range{std::ldexp(1.0, -40), std::ldexp(1.0, 8)}};
    figure.y = {.label = "% of elements", .range = Range{0, 20}, .visible = false};
    if (arms.empty() || !arms[arm].watched) {
        figure.title = fmt::format("{} {} before and after the cast", class_name(plan.tensor(shown).tensor),
                                   plan.tensor(shown).name);
        figure.add("", TextMark{std::ldexp(1.0, -16), 10, std::string(none), Anchor::center, false, 0, 0},
                   {.color = {Role::muted}});
        return figure;
    }
    const TensorView& view = *arms[arm].watched;
    const Recipe& recipe = spec.arms[arm];
    figure.title = histogram_title(history, plan.tensor(view.id), view);
    figure.x.label += " in step " + group_thousands(view.step);
    add_view(figure, view, tensor_role(recipe, plan, view.id), true);
    return figure;
}

}  // namespace fp8lab::live
