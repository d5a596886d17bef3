#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "core/figure/axis.h"
#include "labs/window/model.h"

namespace fp8lab::window {

namespace {

constexpr double kExcellent_db = 25;  // what torchao's tests ask of a float8 tensor, numerics.md 5.1

// "3.94e5": no more than it says.
std::string compact(double value) {
    if (!(value >= 1e5)) return screen_number(value, 3);
    const int exponent = static_cast<int>(std::floor(std::log10(value)));
    return fmt::format("{}e{}", screen_number(value / std::pow(10.0, exponent), 3), exponent);
}

std::string decibels(double cost) { return cost < 0.05 ? "nothing" : screen_number(cost, 2) + " dB"; }

std::string power(int exponent) { return fmt::format("2^{}", exponent); }

}  // namespace

Range axis_of(const Outcome& outcome) {
    if (!(outcome.amax > 0)) return {0x1p-12, 0x1p12};
    const int top = std::ilogb(outcome.amax);
    const int margin = outcome.spec.source == "manual" ? 0 : outcome.spec.margin;
    const int words = outcome.cast.stats.overflow > 0 ? 9 : 5;  // room beside the window's end
    const int room = std::max(words, margin + 2);
    return {std::ldexp(1.0, std::ilogb(outcome.smallest) - 1), std::ldexp(1.0, top + room)};
}

std::string finding(const Outcome& outcome) {
    const CastStats& stats = outcome.cast.stats;
    const std::string_view name = outcome.format.label;
    if (outcome.amax == 0) {
        if (outcome.cast.not_finite > 0)
            return "An all-zero tensor: the scale is 448 / 0 = Inf, and every output is NaN";
        return fmt::format("An all-zero tensor stays zero under a scale of {}",
                           screen_number(outcome.cast.scale, 3));
    }
    const double lost = stats.underflow_pct(), clipped = stats.overflow_pct();
    if (outcome.cast.not_finite > 0)
        return fmt::format("{} % of the tensor is above {}’s window and becomes NaN or Inf",
                           screen_number(clipped, 3), name);
    if (stats.overflow > 0)
        return fmt::format("{} % of the tensor is above {}’s window and saturates", screen_number(clipped, 3),
                           name);
    const double sqnr = stats.sqnr_db();
    if (const std::size_t count = outcome.tensor->outliers.size(); count > 0)
        return fmt::format(
            "{} of {} sigma cost{} {}’s other elements {}",
            count == 1 ? "One outlier" : group_thousands(static_cast<std::int64_t>(count)) + " outliers",
            screen_number(outcome.spec.tensor.outlier_ratio, 3), count == 1 ? "s" : "", name,
            decibels(outcome.base_sqnr_db - outcome.cast.inlier_sqnr_db));
    if (lost >= 1 && sqnr >= kExcellent_db)
        return fmt::format("{} dB looks excellent, yet {} % of this tensor became zero",
                           screen_number(sqnr, 3), screen_number(lost, 3));
    if (lost >= 1)
        return fmt::format("{} % of the tensor is below {}’s window and becomes zero", screen_number(lost, 3),
                           name);
    if (outcome.spec.source != "manual" && outcome.spec.margin > 0) {
        const double cost = outcome.own.at(0).stats.sqnr_db() - sqnr;
        return fmt::format("A margin of {} = ×{} costs {} {}", power(outcome.spec.margin),
                           1 << outcome.spec.margin, name,
                           cost < 0.05 ? "nothing" : screen_number(cost, 2) + " dB");
    }
    return fmt::format("The tensor fits into {}’s window: SQNR {} dB", name, screen_number(sqnr, 3));
}

namespace {

// What is outside the window, the outliers, and the window's top.
void add_words(Figure& figure, const Outcome& outcome, double tallest) {
    const Range axis = *figure.x.range, window = outcome.window;
    const Role role = outcome.format.role;
    const auto words = [&](double x, const std::string& strong, const std::string& plain, Role ink,
                           Anchor anchor, float dx, std::optional<Range> room = {}) {
        figure.add("", TextMark{x, 1.22 * tallest, strong + "\n" + plain, anchor, true, dx, 0, room},
                   {.color = {ink, Tone::ink}, .in_legend = false});
    };
    const CastStats& stats = outcome.cast.stats;
    if (outcome.amax == 0) {
        const bool nan = outcome.cast.not_finite > 0;
        const double middle = std::sqrt(axis.lo * axis.hi);
        const auto centred = [&](std::string text, bool strong, Role ink, float dy) {
            figure.add("", TextMark{middle, 0.7 * tallest, std::move(text), Anchor::center, strong, 0, dy},
                       {.color = {ink, Tone::ink}, .in_legend = false});
        };
        centred(nan ? "0 × Inf = NaN" : "0 × " + screen_number(outcome.cast.scale, 3) + " = 0", true,
                nan ? Role::sat : Role::text, 0);
        centred("every element", false, Role::muted, 20);
        figure.x.visible = figure.y.visible = false;
        return;
    }
    if (const auto& outliers = outcome.tensor->outliers; !outliers.empty()) {
        const double x = static_cast<double>(std::fabs(outcome.tensor->values[outliers.front()]));
        const std::string count = group_thousands(static_cast<std::int64_t>(outliers.size()));
        figure.scatter("outliers", data({x}), data({0.02 * tallest}),
                       {.color = {Role::text}, .marker = Marker::disc, .marker_size = 4, .in_legend = false});
        figure.add("",
                   TextMark{x, 0.02 * tallest, count + (count == "1" ? " outlier" : " outliers"),
                            Anchor::right, false, -12, -8},
                   {.color = {Role::text}, .in_legend = false});
    }
    if (stats.underflow_pct() >= 1)
        words(axis.lo, "below the window", "the cast writes 0", Role::under, Anchor::left, 8,
              Range{axis.lo, outcome.zero_to});
    if (stats.overflow > 0)
        words(axis.hi, "above the window", outcome.cast.not_finite > 0 ? "NaN or Inf" : "the largest value",
              Role::sat, Anchor::right, -8);
    else if (window.hi < axis.hi && outcome.amax > 0)
        words(window.hi, "top " + compact(window.hi),
              window.hi < 1.01 * outcome.amax ? "the amax" : "amax " + compact(outcome.amax), role,
              Anchor::right, -10);
}

}  // namespace

Figure window_figure(const Outcome& outcome) {
    Figure figure;
    figure.id = "window";
    figure.title = finding(outcome);
    figure.subtitle = fmt::format("n = {}", group_thousands(outcome.cast.stats.n));
    const Range axis = axis_of(outcome);
    figure.x = {.label = "|x|", .scale = Scale::log2, .range = axis};
    const Histogram& counts = outcome.histogram;
    const double tallest = counts.tallest;
    figure.y = {.label = "elements per half binade", .range = Range{0, 1.45 * tallest}};
    const Role role = outcome.format.role;
    const Range window = outcome.window;
    if (std::isfinite(window.hi) && window.hi > 0) {
        const double normal_from = std::min(outcome.normal_from, window.hi);
        figure.xspan("window", normal_from, window.hi, {.color = {role, Tone::tint}, .in_legend = false});
        figure.xspan("window##subnormal", outcome.zero_to, normal_from,
                     {.color = {role, Tone::tint, 0.5F}, .in_legend = false});
    }
    if (counts.edges) {
        const auto bars = [&](std::string label, const Data& heights, Role ink, bool in_legend) {
            figure.bars(std::move(label), counts.edges, heights,
                        {.color = {ink, Tone::fill}, .in_legend = in_legend});
        };
        bars("elements", counts.all, Role::text, false);
        bars("becomes 0", counts.underflow, Role::under, false);
        bars("saturates", counts.saturated, Role::sat, false);
    }
    add_words(figure, outcome, tallest);
    return figure;
}

Figure margin_figure(const Outcome& outcome) {
    Figure figure;
    figure.id = "margin";
    std::vector<double> margins;
    for (int margin = kLowestMargin; margin <= kHighestMargin; ++margin) margins.push_back(margin);
    const Data xs = data(std::move(margins));
    double highest = 30;
    const auto curve = [&](const Sweep& sweep, float width, Dash dash) {
        std::vector<double> sqnr;
        for (const Cast& cast : sweep.casts) {
            const double value = cast.stats.sqnr_db();
            sqnr.push_back(std::isfinite(value) ? value : kNan);
            if (std::isfinite(value)) highest = std::max(highest, value);
        }
        const Role role = sweep.format.role;
        figure.line(std::string(sweep.format.label), xs, data(std::move(sqnr)),
                    {.color = {role}, .width = width, .dash = dash});
    };
    curve(outcome.other, 2, Dash::dash);
    curve(outcome.own, 3, Dash::solid);
    const auto at = [](const Sweep& sweep, int margin) { return sweep.at(margin).stats.sqnr_db(); };
    const double cost = at(outcome.own, 0) - at(outcome.own, 9),
                 others = at(outcome.other, 0) - at(outcome.other, 9);
    if (!std::isfinite(cost) || !std::isfinite(others))
        figure.title = "A tensor of zeros has no SQNR";
    else
        figure.title = fmt::format("Margin ×512 costs {} {}, {} {}", outcome.own.format.label, decibels(cost),
                                   outcome.other.format.label, decibels(others));
    figure.x = {.label = "margin", .range = Range{kLowestMargin, kHighestMargin}};
    figure.y = {.label = "SQNR dB", .range = Range{0, 1.15 * highest}};
    if (outcome.spec.source != "manual") figure.vline("now", outcome.spec.margin);
    figure.series.back().style.in_legend = outcome.spec.source == "manual";
    return figure;
}

Figure loss_figure(const Outcome& outcome) {
    Figure figure;
    figure.id = "loss";
    // One group of two bars a gradient: under the loss scale alone, and with a scale of its own.
    std::vector<double> shared, own;
    const LossScaled& loss = outcome.loss;
    double worst = 0, best = 0;
    for (std::size_t i = 0; i < kGradients.size(); ++i) {
        const CastStats &a = loss.shifted.at(i).stats, &b = loss.scaled.at(i).stats;
        shared.push_back(a.underflow_pct() + a.overflow_pct());
        own.push_back(b.underflow_pct() + b.overflow_pct());
        worst = std::max(worst, shared.back()), best = std::max(best, own.back());
        const auto x = static_cast<double>(i);
        figure.bars("loss scale alone" + std::string(i ? fmt::format("##{}", i) : ""),
                    data({x + 0.1, x + 0.5}), data({shared.back()}),
                    {.color = {Role::under, Tone::fill}, .in_legend = i == 0});
        figure.bars("and its own scale" + std::string(i ? fmt::format("##{}", i) : ""),
                    data({x + 0.5, x + 0.9}), data({own.back()}),
                    {.color = {outcome.format.role, Tone::fill}, .in_legend = i == 0});
        figure.add("", TextMark{x + 0.5, 0, kGradients.at(i), Anchor::center, false, 0, 14},
                   {.color = {Role::muted}, .in_legend = false});
        figure.add(
            "",
            TextMark{x + 0.3, shared.back(), screen_number(shared.back(), 3), Anchor::center, false, 0, -10},
            {.color = {Role::text}, .in_legend = false});
        figure.add("",
                   TextMark{x + 0.7, own.back(), screen_number(own.back(), 3), Anchor::center, false, 0, -10},
                   {.color = {Role::text}, .in_legend = false});
    }
    figure.title = worst > best + 1 ? fmt::format("One loss scale for all: {} % lost. One scale each: {} %",
                                                  screen_number(worst, 3), screen_number(best, 3))
                                    : std::string("This loss scale suits all three gradients");
    figure.x = {.label = "", .range = Range{0, 3}, .visible = false};
    figure.y = {.label = "% that underflow or saturate",
                .range = Range{0, std::max(10.0, 1.25 * std::max(worst, best))}};
    return figure;
}

Figure Window::thumbnail() const {
    Figure figure = window_figure(*outcome);
    std::erase_if(figure.series,
                  [](const Series& series) { return std::holds_alternative<TextMark>(series.shape); });
    figure.y.range->hi /= 1.2;
    return figure;
}

}  // namespace fp8lab::window
