#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/error/model.h"

namespace fp8lab::error {

namespace {

// The error axis. No error is above 100: the rest is room for the zones' words.
constexpr Range kPercent = {0.02, 500};

std::string number_text(double value) { return format_number(value, 4, true); }

// Three shades for curves that must not be told by their colour.
Color blind_color(std::size_t i) {
    constexpr std::array kShades = {Role::text, Role::muted, Role::axis};
    return {kShades[i]};
}

// Strong where the tooth is high, thin down to the representable values, where the error is 0.
void add_curve(Figure& figure, const Curve& curve, std::string name, Color color, bool leads) {
    Color thin = color;
    thin.opacity = 0.2F;
    figure.line(name + "##dips", curve.x, curve.percent, {.color = thin, .width = 1, .in_legend = false});
    figure.line(std::move(name), curve.x, curve.crests, {.color = color, .width = leads ? 2.5F : 2.0F});
}

// Where the first format lets go, and the level that it keeps between.
void add_zones(Figure& figure, const Curve& curve, Range axis) {
    const Color shade = {Role::field, Tone::fill, 0.35F};
    const auto clamp = [&](double x) { return std::clamp(x, axis.lo, axis.hi); };
    const double dies = clamp(curve.dies), least = clamp(curve.normal.lo), largest = clamp(curve.largest);
    const auto words = [&](double x, std::string text, Role role, Anchor anchor, Range room) {
        figure.add("zone##" + text, TextMark{x, kPercent.hi, text, anchor, false, 0, 14, room},
                   {.color = {role, Tone::ink}, .in_legend = false});
    };
    figure.xspan("underflow", axis.lo, least, {.color = shade, .in_legend = false});
    figure.xspan("saturation", largest, axis.hi, {.color = shade, .in_legend = false});
    words(1.2 * axis.lo, "becomes 0", Role::under, Anchor::left, {1.2 * axis.lo, 2 * dies});
    words(least / 1.15, "subnormal", Role::muted, Anchor::right, {2.4 * dies, least / 1.15});
    words(1.2 * least,
          fmt::format("normal: {} to {}", number_text(curve.normal.lo), number_text(curve.normal.hi)),
          Role::muted, Anchor::left, {1.2 * least, largest});
    if (largest < axis.hi) words(axis.hi, "saturated", Role::sat, Anchor::right, axis);
}

std::string level_words(const Curve& curve) {
    return fmt::format("1/{} = {} %", std::lround(100 / curve.worst_pct),
                       format_number(curve.worst_pct, 3, true));
}

// The levels that the floating formats keep, with words over the highest.
void add_levels(Figure& figure, const std::vector<Curve>& curves, Range axis) {
    std::string words;
    double top = 0;
    for (const Curve& curve : curves) {
        const double lo = std::max(curve.normal.lo, axis.lo), hi = std::min(curve.normal.hi, axis.hi);
        if (lo >= hi) continue;
        figure.line("worst case##" + curve.rounder.id, data({lo, hi}),
                    data({curve.worst_pct, curve.worst_pct}),
                    {.color = {Role::text}, .width = 1, .dash = Dash::dot, .in_legend = false});
        words += (words.empty() ? "worst case " : ", ") + level_words(curve);
        top = std::max(top, curve.worst_pct);
    }
    const Range normal = curves.front().normal;
    if (curves.size() == 1) words += ", at every normal size";
    TextMark mark{std::sqrt(std::max(normal.lo, axis.lo) * std::min(normal.hi, axis.hi)),
                  top,
                  std::move(words),
                  Anchor::center,
                  true,
                  0,
                  -14};
    figure.add("worst case##words", std::move(mark), {.color = {Role::text}, .in_legend = false});
}

}  // namespace

Figure error_figure(const Outcome& outcome) {
    Figure figure;
    figure.id = "error";
    figure.x = {.label = "|x|", .scale = Scale::log10, .range = outcome.axis};
    figure.y = {.label = "relative error %", .scale = Scale::log10, .range = kPercent};
    if (outcome.params.blind) {
        figure.title = "Three ways to round. Which is which?";
        for (std::size_t i = 0; i < outcome.curves.size(); ++i)
            add_curve(figure, outcome.curves[i], std::string(1, static_cast<char>('A' + i)), blind_color(i),
                      false);
        return figure;
    }
    const Curve& first = outcome.curves.front();
    const bool alone = outcome.curves.size() == 1 || outcome.params.second != outcome.curves[1].rounder.id;
    figure.title =
        alone || !outcome.params.levels
            ? "Flat in the middle, a cliff at each end"
            : fmt::format("Flat at 1/{} and 1/{}, a cliff at each end", std::lround(100 / first.worst_pct),
                          std::lround(100 / outcome.curves[1].worst_pct));
    add_zones(figure, first, outcome.axis);
    for (std::size_t i = outcome.curves.size(); i-- > 0;)  // the first one on top
        add_curve(figure, outcome.curves[i], outcome.curves[i].rounder.label,
                  {outcome.curves[i].rounder.role}, i == 0);
    if (outcome.params.levels) add_levels(figure, outcome.curves, outcome.axis);
    return figure;
}

Figure data_figure(const Outcome& outcome) {
    Figure figure;
    figure.id = "data";
    const Row& first = outcome.rows.front();
    const std::string_view name = first.rounder.label;
    const ErrorMetrics& m = first.metrics;
    if (m.overflow_pct > 0)
        figure.title = fmt::format("{} % of the tensor saturates in {}", number_text(m.overflow_pct), name);
    else if (m.underflow_pct > 0)
        figure.title = fmt::format("{} % of the tensor is below {}’s left cliff and becomes 0",
                                   number_text(m.underflow_pct), name);
    else
        figure.title = fmt::format("The whole tensor is between {}’s cliffs", name);
    figure.x = {.label = "|x|", .scale = Scale::log10, .range = outcome.axis};
    std::vector<double> edges;
    for (int k = 0; k <= Log2Histogram::kBins; ++k)
        edges.push_back(std::ldexp(1.0, Log2Histogram::kLowest + k));
    const auto heights = [&](const Log2Histogram& counts) {
        return std::vector<double>(counts.counts.begin(), counts.counts.end());
    };
    const std::vector<double> all = heights(outcome.all);
    figure.y = {.label = "elements",
                .range = Range{0, 1.1 * std::max(1.0, *std::max_element(all.begin(), all.end()))}};
    const Data bins = data(std::move(edges));
    const auto bars = [&](std::string label, std::vector<double> counted, Role role, bool in_legend) {
        figure.bars(std::move(label), bins, data(std::move(counted)),
                    {.color = {role, Tone::fill}, .in_legend = in_legend});
    };
    bars("elements", all, Role::text, false);
    bars("becomes 0", heights(outcome.lost), Role::under, m.underflow_pct > 0);
    bars("saturates", heights(outcome.clipped), Role::sat, m.overflow_pct > 0);
    return figure;
}

std::string table_title(const Outcome& outcome) {
    const auto winner = [&](std::string_view id) -> std::optional<std::size_t> {
        for (const Column& column : columns())
            if (column.id == id) return best_row(outcome, column);
        return std::nullopt;
    };
    const auto by_l2 = winner("rel_l2"), by_mean = winner("mean_rel");
    if (!by_l2 || !by_mean) return "What the rounding did to the tensor";
    const auto label = [&](std::size_t row) { return outcome.rows[row].rounder.label; };
    if (*by_l2 == *by_mean) return label(*by_l2) + " is best, by relative L2 and by mean relative error";
    return fmt::format("The metrics disagree: {} is better by L2, {} by the mean", label(*by_l2),
                       label(*by_mean));
}

RoundedMarker round_marker(const Row& row, double at) {
    const std::array in = {static_cast<float>(at)};
    std::array<float, 1> out{};
    round_all(row.rounder, in, out, row.scale);
    const double x = static_cast<double>(in[0]), q = static_cast<double>(out[0]);
    return {x, q, 100 * std::fabs(x - q) / x};
}

std::string marker_text(const Outcome& outcome, double at) {
    const auto [x, q, percent] = round_marker(outcome.rows.front(), at);
    if (q == x) return fmt::format("{} stays {}: no error", number_text(x), number_text(q));
    return fmt::format("{} becomes {}: {} % off", number_text(x), number_text(q),
                       format_number(percent, 3, true));
}

}  // namespace fp8lab::error
