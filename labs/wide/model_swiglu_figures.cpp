// The figures "timeline", "quadratic" and "pair" of L14.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/base/units.h"
#include "labs/wide/model.h"

namespace fp8lab::wide {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

std::string times(double value) { return screen_number(value, 3) + "×"; }

double middle(int step) { return step + 0.5; }  // a step is drawn over [t, t + 1]

void add_brackets(Figure& figure, const SwigluSpec& spec, double y) {
    const auto bracket = [&](double from, double to, std::string words) {
        figure.add("", Bracket{from + 0.05, to - 0.05, y, std::move(words)},
                   {.color = {Role::muted}, .in_legend = false});
    };
    bracket(0, kGrowthStep, "weights × " + screen_number(spec.k, 3));
    bracket(kGrowthStep, kSteps,
            fmt::format("weights × {}, from step 8 on", screen_number(spec.k * spec.jump, 3)));
}

}  // namespace

std::string fix_name(const SwigluSpec& spec) {
    std::string out = spec.fix == "current"   ? "current scaling"
                      : spec.fix == "smooth"  ? "Smooth-SwiGLU"
                      : spec.fix == "clamp10" ? "clamp 10"
                      : spec.fix == "gelu"    ? "GELU"
                                              : "";
    if (spec.margin > 0 && spec.fix != "smooth")
        out += fmt::format("{}margin {}", out.empty() ? "" : ", ", spec.margin);
    return out;
}

std::string timeline_title(const Swiglu& s) {
    const int count = s.saturated_steps();
    const std::string fix = fix_name(s.spec);
    if (count == 0) return fix.empty() ? "No step saturates" : "No step saturates: " + fix;
    if (s.spec.fix != "none")
        return fmt::format("The weights grow {}: {} of {} steps saturate", times(s.spec.jump), count, kSteps);
    return fmt::format("The weights grow {}, the product {}: {} of {} steps saturate", times(s.spec.jump),
                       times(s.spec.jump * s.spec.jump), count, kSteps);
}

std::vector<std::string> timeline_words(const Swiglu& s) {
    std::vector<std::string> out = {timeline_title(s) + "."};
    for (int t = 0; t < kSteps; ++t) {
        const SwigluStep& step = s.steps[static_cast<std::size_t>(t)];
        if (step.saturated > 0)
            out.push_back(fmt::format(
                "Step {}: amax {}, window top {}; {} element{} saturate{}, channel 0 has {:.1f} dB.", t,
                screen_number(step.amax, 3), screen_number(step.top, 3), step.saturated,
                step.saturated == 1 ? "" : "s", step.saturated == 1 ? "s" : "", step.channel_db));
    }
    return out;
}

Figure timeline_figure(const Swiglu& s) {
    Figure figure{.id = "timeline",
                  .x = {.label = "step", .range = Range{0, kSteps}},
                  .y = {.label = "|h|", .scale = Scale::log2, .range = Range{32, 1024}}};
    if (s.steps.empty()) return figure;
    figure.title = timeline_title(s);
    double lo = HUGE_VAL, hi = 0;
    for (const SwigluStep& step : s.steps) {
        lo = std::min({lo, step.amax, step.top});
        hi = std::max({hi, step.amax, step.top});
    }
    const double head = std::pow(2 * hi / lo, 0.2);  // room for the brackets
    // Between two powers of two, so that no tick is at the lower end.
    figure.y.range = Range{std::exp2(std::floor(std::log2(lo)) - 0.6), hi * std::max(1.6, head)};
    std::vector<double> edges, tops, xs, ys, shaft_x, shaft_y, tip_x, tip_y;
    for (int t = 0; t < kSteps; ++t) {
        const SwigluStep& step = s.steps[static_cast<std::size_t>(t)];
        edges.push_back(t), tops.push_back(step.top);
        if (step.saturated > 0) {
            shaft_x.insert(shaft_x.end(), {middle(t), middle(t), kNothing});
            shaft_y.insert(shaft_y.end(), {step.top, step.amax, kNothing});
            tip_x.push_back(middle(t)), tip_y.push_back(step.amax);
        } else {
            xs.push_back(middle(t)), ys.push_back(step.amax);
        }
    }
    edges.push_back(kSteps), tops.push_back(tops.back());
    const Data x = data(edges), top = data(tops);
    figure.band("window", x, data(std::vector<double>(edges.size(), figure.y.range->lo)), top,
                {.color = {Role::e4m3}, .step = true, .in_legend = false});
    figure.line("window top", x, top, {.color = {Role::e4m3}, .width = 3, .step = true});
    figure.line("saturated##shaft", data(shaft_x), data(shaft_y),
                {.color = {Role::sat}, .width = 3, .in_legend = false});
    figure.scatter("amax of h", data(xs), data(ys),
                   {.color = {Role::text}, .marker = Marker::disc, .marker_size = 4});
    figure.scatter("saturated", data(tip_x), data(tip_y),
                   {.color = {Role::sat, Tone::line}, .marker = Marker::triangle_up, .marker_size = 6});
    add_brackets(figure, s.spec, hi * std::max(1.6, head) / std::pow(hi / lo * 2, 0.1));
    const auto words = [&](double at, double y, std::string text, Role ink, Anchor anchor, float dx,
                           float dy) {
        figure.add("",
                   TextMark{.x = at, .y = y, .text = std::move(text), .anchor = anchor, .dx = dx, .dy = dy},
                   {.color = {ink, Tone::ink}, .in_legend = false});
    };
    for (int t = 0; t < kSteps; ++t) {  // the factor where it is more than a little
        const SwigluStep& step = s.steps[static_cast<std::size_t>(t)];
        if (step.saturated == 0 || step.over() < 1.5) continue;
        words(middle(t), step.amax, fmt::format("{}, {:.1f}×", screen_number(step.amax, 3), step.over()),
              Role::sat, Anchor::right, -10, 4);
        words(t, step.top, screen_number(step.top, 3), Role::e4m3, Anchor::right, -8, -12);
    }
    figure.words = timeline_words(s);
    return figure;
}

Figure quadratic_figure(const Swiglu& s) {
    Figure figure{.id = "quadratic",
                  .x = {.label = "k", .scale = Scale::log2, .range = Range{1, 16}},
                  .y = {.label = "amax of h", .scale = Scale::log2, .range = Range{0.5, 4096}}};
    if (s.norms.empty()) return figure;
    figure.title = "Twice the weights, four times the product";
    std::vector<double> k, swiglu, gelu, clamp10;
    for (const NormPoint& point : s.norms) {
        k.push_back(point.k);
        swiglu.push_back(point.swiglu), gelu.push_back(point.gelu), clamp10.push_back(point.clamp10);
    }
    const Data x = data(k);
    figure.line("Smooth-SwiGLU", data({1, 16}), data({1, 1}),
                {.color = {Role::text}, .width = 1, .in_legend = false});
    figure.line("GELU", x, data(gelu),
                {.color = {Role::muted}, .width = 2, .dash = Dash::long_dash, .in_legend = false});
    figure.line("clamp 10", x, data(clamp10),
                {.color = {Role::text}, .width = 2, .dash = Dash::dot, .in_legend = false});
    figure.line("SwiGLU", x, data(swiglu), {.color = {Role::text}, .width = 3, .in_legend = false});
    figure.words = {figure.title + "."};
    for (const NormPoint& point : s.norms)
        if (std::fabs(std::remainder(std::log2(point.k), 1)) < 1e-9)
            figure.words.push_back(fmt::format("k = {}: amax {} with SwiGLU, {} with GELU, {} with clamp 10.",
                                               screen_number(point.k), screen_number(point.swiglu, 3),
                                               screen_number(point.gelu, 3),
                                               screen_number(point.clamp10, 3)));
    return figure;
}

Figure pair_figure(const Swiglu& s) {
    Figure figure{.id = "pair", .x = {.label = "h of channel 0"}, .y = {.label = "tokens"}};
    if (s.channel.empty()) return figure;
    const double degrees = std::acos(std::clamp(s.spec.rho, 0.0, 1.0)) * 180 / std::numbers::pi;
    figure.title = fmt::format("Gate and up row of channel 0, {:.0f} degrees apart", degrees);
    constexpr int kBars = 32;
    float top = 0;
    for (const float h : s.channel) top = std::max(top, std::fabs(h));
    const double reach = std::max(1.0, std::ceil(static_cast<double>(top)));
    std::vector<double> edges, counts(kBars);
    for (int i = 0; i <= kBars; ++i) edges.push_back(reach * (2.0 * i / kBars - 1));
    for (const float h : s.channel)
        ++counts[static_cast<std::size_t>(
            std::clamp(std::floor((static_cast<double>(h) / reach + 1) * kBars / 2), 0.0, kBars - 1.0))];
    figure.bars("tokens", data(edges), data(counts), {.color = {Role::text}, .in_legend = false});
    const double positive =
        100.0 * static_cast<double>(std::ranges::count_if(s.channel, [](float h) { return h > 0; })) /
        static_cast<double>(s.channel.size());
    figure.words = {figure.title + ".",
                    fmt::format("h of channel 0 is above 0 for {:.0f} % of the tokens; its amax is {}.",
                                positive, screen_number(static_cast<double>(top), 3))};
    return figure;
}

}  // namespace fp8lab::wide
