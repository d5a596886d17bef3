// The figures "forget", "gap" and "cliff" of L14.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/wide/model.h"

namespace fp8lab::wide {
namespace {

Role storage_role(std::string_view format) { return find_format(format).role; }

// A series with at most this many points.
std::pair<Data, Data> thinned(const std::vector<double>& v) {
    constexpr std::size_t kMost = 600;
    const std::size_t every = std::max<std::size_t>(1, v.size() / kMost);
    std::vector<double> x, y;
    for (std::size_t i = 0; i < v.size(); i += every) x.push_back(static_cast<double>(i)), y.push_back(v[i]);
    if (x.empty() || x.back() + 1 < static_cast<double>(v.size()))
        x.push_back(static_cast<double>(v.size()) - 1), y.push_back(v.back());
    return {data(std::move(x)), data(std::move(y))};
}

std::string v_text(double v) {
    if (v != 0 && std::fabs(v) < 0.001) return screen_number(v, 3);
    return fmt::format("{:.3f}", v);
}

}  // namespace

std::string forget_title(const Optimiser& o) {
    if (o.exact.empty()) return {};
    const OptimiserSpec& spec = o.spec;
    const double error = o.error_pct();
    const std::string format = format_label(spec.format), steps = group_thousands(spec.length());
    if (error <= kMostOff_pct) return fmt::format("{} follows: {} % off", format, share_text(error));
    if (spec.signal == "noise")
        return fmt::format("After {} steps {} holds {}, the truth is {}", steps, format, v_text(o.v_end()),
                           v_text(o.exact.back()));
    return fmt::format("{}: after {} steps {} holds {}, not {}",
                       o.chosen().stuck ? "The average cannot forget" : "The average is off", steps, format,
                       v_text(o.v_end()), v_text(o.exact.back()));
}

Figure forget_figure(const Optimiser& o) {
    Figure figure{.id = "forget",
                  .title = forget_title(o),
                  .x = {.label = "step", .range = Range{0, static_cast<double>(o.spec.length())}},
                  .y = {.label = "v"}};
    if (o.exact.empty()) return figure;
    const Role role = storage_role(o.spec.format);
    const std::string format = format_label(o.spec.format);
    const bool bf16 = o.spec.format == "bf16", wide = o.spec.format == "fp32";
    const bool stochastic = o.spec.rounding == "stochastic";
    const auto line = [&](const std::string& name, const std::vector<double>& v, Style style) {
        const auto [x, y] = thinned(v);
        figure.line(name, x, y, style);
    };
    line("exact", o.exact, {.color = {Role::text}, .width = 2});
    if (!wide) {
        line(format + ", stochastic", o.stochastic.v,
             {.color = {role},
              .width = stochastic ? 3.0F : 1.5F,
              .dash = bf16 ? Dash::long_dash : Dash::solid});
        line(format, o.nearest.v,
             {.color = {role},
              .width = stochastic ? 1.5F : 3.0F,
              .dash = bf16 ? Dash::long_dash : Dash::solid});
    } else {
        line(format, o.nearest.v, {.color = {Role::truth}, .width = 3, .dash = Dash::dot});
    }
    double lo = HUGE_VAL, hi = 0;
    for (const auto* v : {&o.exact, &o.nearest.v, &o.stochastic.v})
        for (const double value : *v) lo = std::min(lo, value), hi = std::max(hi, value);
    const double pad = std::max(0.06 * (hi - lo), 1e-6 + 0.01 * hi);
    figure.y.range = Range{std::max(0.0, lo - pad), hi + pad};
    figure.words = {figure.title + "."};
    figure.words.push_back(fmt::format("Exact: {}. To nearest: {}. Stochastic, mean of {} elements: {}.",
                                       v_text(o.exact.back()), v_text(o.nearest.v.back()),
                                       group_thousands(kElements), v_text(o.stochastic.v.back())));
    for (const Optimiser::End& end : o.ends)
        figure.words.push_back(fmt::format("{} with scale 1: {} to nearest, {} stochastic.",
                                           format_label(end.format), v_text(end.nearest),
                                           v_text(end.stochastic)));
    return figure;
}

std::string gap_title(const Optimiser& o) {
    if (o.exact.empty()) return {};  // before the first result
    if (o.at <= 0) return "v is 0: it has nothing to forget";
    const double step = o.step_pct(), half = o.half_gap_pct();
    return fmt::format("The step is {} % of v, half a gap {} %", screen_number(step, 2),
                       screen_number(half, 2));
}

Figure gap_figure(const Optimiser& o) {
    Figure figure{.id = "gap",
                  .title = gap_title(o),
                  .x = {.label = "v"},
                  .y = {.range = Range{-1, 1}, .visible = false}};
    if (o.at <= 0) return figure;
    const double low = o.at - o.below, high = o.above - o.at;
    const double from = o.at - 1.7 * std::max(low, high / 2), to = o.at + 1.3 * std::max(high, low);
    figure.x.range = Range{from, to};
    const Role role = storage_role(o.spec.format);
    figure.xspan("", o.at - low / 2, o.at + high / 2, {.color = {role}, .in_legend = false});
    figure.hline("", 0, {.color = {Role::axis}, .width = 1, .in_legend = false});
    for (const double value : {o.below, o.at, o.above})
        figure.line("", data({value, value}), data({-0.3, 0.3}),
                    {.color = {Role::text}, .width = 2, .in_legend = false});
    const double step = o.at * (1 - o.spec.beta2);
    figure.line("step", data({o.at, std::max(o.at - step, from)}), data({0, 0}),
                {.color = {Role::sat}, .width = 3, .in_legend = false});
    figure.scatter("v", data({o.at}), data({0}),
                   {.color = {Role::text}, .marker = Marker::disc, .marker_size = 5, .in_legend = false});
    const bool stays = o.step_pct() <= o.half_gap_pct() * (1 + 1e-6);
    figure.words = {figure.title + ".",
                    o.spec.rounding == "stochastic" ? "v goes to one of its neighbours at random."
                    : stays                         ? "The result rounds back to v."
                                                    : "v moves.",
                    fmt::format("v is {}; the values beside it are {} and {}.", screen_number(o.at, 5),
                                screen_number(o.below, 5), screen_number(o.above, 5))};
    return figure;
}

Figure cliff_figure(const Optimiser& o) {
    Figure figure{.id = "cliff",
                  .title = o.exact.empty() ? "" : "Each format needs a step of its own size",
                  .x = {.label = "1 − beta2", .scale = Scale::log10, .range = Range{1e-4, 0.3}},
                  .y = {.label = "v / exact after one half-life", .range = Range{0.45, 2.25}}};
    struct Band {
        std::string_view format;
        double lo, hi;  // half a gap, of v
    };
    constexpr std::array<Band, 3> kBands = {
        {{"bf16", 0x1p-9, 0x1p-8}, {"e4m3", 0x1p-5, 0x1p-4}, {"e5m2", 0x1p-4, 0x1p-3}}};
    for (const Band& band : kBands)
        figure.xspan("", band.lo, band.hi,
                     {.color = {storage_role(band.format), Tone::band}, .in_legend = false});
    figure.hline("", 1, {.color = {Role::text}, .width = 1, .in_legend = false});
    if (o.exact.empty()) return figure;
    figure.vline("", 1 - o.spec.beta2, {.color = {Role::axis}, .width = 1, .in_legend = false});
    figure.words = {figure.title + "."};
    for (const Cliff& cliff : cliffs()) {
        std::vector<double> x, y;
        double from = 0;
        for (const CliffPoint& point : cliff.points) {
            x.push_back(point.step), y.push_back(point.ratio);
            if (from == 0 && point.ratio < 1.9) from = point.step;
        }
        const bool bf16 = cliff.format == "bf16";
        figure.line(format_label(cliff.format), data(x), data(y),
                    {.color = {storage_role(cliff.format)},
                     .width = bf16 ? 3.0F : 2.0F,
                     .dash = bf16 ? Dash::long_dash : Dash::solid,
                     .in_legend = false});
        figure.words.push_back(fmt::format("{} begins to forget at 1 − beta2 = {}.",
                                           format_label(cliff.format), screen_number(from, 2)));
    }
    return figure;
}

}  // namespace fp8lab::wide
