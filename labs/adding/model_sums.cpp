// Running sums in several formats, and the weight that small updates do not move.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/units.h"
#include "labs/adding/model.h"

namespace fp8lab::adding {

namespace {

constexpr std::size_t kRuns = 64;  // of stochastic rounding, for mean and spread

Style style_of(const FormatInfo& format, bool chosen) {
    Style style{.color = {format.role}, .width = chosen ? 3.0F : 2.0F};
    if (format.name == "bf16") style.dash = Dash::dash;
    if (format.name == "fp16") style.color = {Role::muted}, style.dash = Dash::long_dash;
    return style;
}

Data counted(std::size_t n) {
    std::vector<double> out(n);
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<double>(i);
    return data(std::move(out));
}

// Half the gap above `at`: what an addend must exceed.
double half_gap(const FormatInfo& format, double at) {
    const double exponent = std::floor(std::log2(std::max(at, min_normal(format))));
    return std::exp2(exponent - format.mantissa_bits - 1);
}

std::string sum_title(const Sum& sum, const Params& params) {
    const std::string label(sum.format.label), added = screen_number(params.addend);
    const double last = sum.path.back();
    if (params.rounding == "nearest" && sum.stall <= last)
        return fmt::format("{} stops at {}: adding {} no longer changes it", label, screen_number(last),
                           added);
    return fmt::format("{} reaches {} after {} terms; exact is {}", label, screen_number(last), params.terms,
                       screen_number(sum.exact));
}

Figure sum_figure(const Outcome& outcome, const Params& params) {
    const Sum& chosen = outcome.sums[outcome.chosen];
    Figure figure{.id = "sum", .title = sum_title(chosen, params)};
    // Room for the numbers at the ends of the curves.
    figure.x = {
        .label = "terms added", .scale = Scale::log2, .range = Range{1, std::pow(1.0 * params.terms, 1.1)}};
    figure.y = {.label = "running sum", .scale = Scale::log2};
    const Data steps = counted(chosen.path.size());
    // The chosen one last, on top of the others.
    for (const bool on_top : {false, true})
        for (std::size_t i = outcome.sums.size(); i-- > 0;) {
            if ((i == outcome.chosen) != on_top) continue;
            Style style = style_of(outcome.sums[i].format, on_top);
            style.end_label = screen_number(outcome.sums[i].path.back());
            figure.line(std::string(outcome.sums[i].format.label), steps, data(outcome.sums[i].path), style);
        }
    return figure;
}

Figure gap_figure(const Outcome& outcome, const Params& params) {
    Figure figure{.id = "gaps", .title = "A sum stops where half its gap reaches the addend"};
    const double last = outcome.sums.back().exact;
    figure.x = {.label = "running sum",
                .scale = Scale::log2,
                .range = Range{params.addend, params.addend * std::pow(1.0 * params.terms, 1.1)}};
    figure.y = {.label = "half the gap", .scale = Scale::log2};
    figure.hline("added", params.addend, {.color = {Role::axis}, .width = 1, .in_legend = true});
    std::vector<double> stop_x, stop_y;
    for (const Sum& sum : outcome.sums) {
        if (sum.format.name == "fp32") continue;  // ten binades below the others
        std::vector<double> xs, ys;
        for (double x = std::exp2(std::floor(std::log2(params.addend))); x < last; x *= 2) {
            xs.push_back(x);
            ys.push_back(half_gap(sum.format, x));
        }
        xs.push_back(last);
        ys.push_back(ys.back());
        Style style = style_of(sum.format, sum.format.name == params.format);
        style.step = true;
        figure.line(std::string(sum.format.label), data(std::move(xs)), data(std::move(ys)), style);
        if (sum.stall > last) continue;
        stop_x.push_back(sum.stall);
        stop_y.push_back(params.addend);
    }
    figure.scatter("stops", data(std::move(stop_x)), data(std::move(stop_y)),
                   {.color = {Role::text}, .marker = Marker::disc, .marker_size = 5, .in_legend = false});
    return figure;
}

}  // namespace

double Sum::error_pct() const { return 100 * (path.back() - exact) / exact; }

std::vector<Choice> sum_formats() {
    return format_choices([](const FormatInfo& f) { return f.trains; });
}

std::vector<Sum> make_sums(const Params& params) {
    std::vector<Sum> out;
    const auto addend = static_cast<float>(params.addend);
    for (const Choice& choice : sum_formats()) {
        Sum sum;
        sum.format = find_format(choice.id);
        const auto seed = static_cast<std::uint64_t>(params.seed);
        sum.path = running_sum(sum.format, parse_method(params.rounding), 0, addend, params.terms, seed);
        sum.exact = params.terms * params.addend;
        // FP32 stops beyond what can be added here.
        sum.stall = sum.format.name == "fp32" ? std::numeric_limits<double>::infinity()
                                              : stall_of(sum.format, 0, addend);
        out.push_back(std::move(sum));
    }
    return out;
}

std::vector<Figure> sum_figures(const Outcome& outcome, const Params& params) {
    return {sum_figure(outcome, params), gap_figure(outcome, params)};
}

Weight make_weight(const Params& params) {
    Weight out;
    out.format = find_format(params.format);
    const auto start = static_cast<float>(params.start), update = static_cast<float>(params.update);
    const auto seed = static_cast<std::uint64_t>(params.seed);
    Rounder copier(out.format, Method::nearest, 0);
    const float first = copier.round(start);
    const auto n = static_cast<std::size_t>(params.updates) + 1;
    out.exact = running_sum(find_format("fp32"), Method::nearest, start, update, params.updates, 0);
    for (const double w : out.exact)
        out.copy.push_back(static_cast<double>(copier.round(static_cast<float>(w))));
    out.nearest = running_sum(out.format, Method::nearest, first, update, params.updates, 0);

    // "nearest" is not random: the stochastic runs are shown beside it.
    const Method method = params.rounding == "nearest" ? Method::stochastic : parse_method(params.rounding);
    std::vector<double> squares(n);
    out.mean.resize(n);
    for (std::size_t run = 0; run < kRuns; ++run) {
        const auto path = running_sum(out.format, method, first, update, params.updates, seed, run);
        if (run == 0) out.one = path;
        for (std::size_t i = 0; i < n; ++i) {
            out.mean[i] += path[i] / kRuns;
            squares[i] += path[i] * path[i] / kRuns;
        }
    }
    for (std::size_t i = 0; i < n; ++i) {
        const double deviation = std::sqrt(std::max(0.0, squares[i] - out.mean[i] * out.mean[i]));
        out.low.push_back(out.mean[i] - deviation);
        out.high.push_back(out.mean[i] + deviation);
    }
    out.final_mean = out.mean.back();
    out.final_deviation = out.high.back() - out.mean.back();
    const double w = static_cast<double>(first), step = 2 * half_gap(out.format, w);
    out.around = {neighbours(out.format, w - step / 4).below, w + step};
    return out;
}

std::vector<Figure> weight_figures(const Outcome& outcome, const Params& params) {
    const Weight& weight = outcome.weight;
    const std::string label(weight.format.label);
    const Role role = weight.format.role;
    Figure path{.id = "weight"};
    const double exact = weight.exact.back();
    const std::string dice = std::abs(weight.final_mean - exact) <= 0.1 * exact
                                 ? "with stochastic rounding it arrives"
                                 : "with this rounding it ends at " + screen_number(weight.final_mean);
    path.title = weight.nearest.back() == weight.nearest.front()
                     ? fmt::format("Rounded to nearest, the {} weight never moves; {}", label, dice)
                     : fmt::format("Rounded to nearest, the {} weight ends at {} instead of {}", label,
                                   screen_number(weight.nearest.back()), screen_number(weight.exact.back()));
    path.x.label = "updates";
    path.y.label = "weight";
    const Data steps = counted(weight.exact.size());
    const auto ending = [](const std::vector<double>& values) { return screen_number(values.back()); };
    path.band("stochastic, ± one standard deviation", steps, data(weight.low), data(weight.high),
              {.color = {role}});
    path.line("one stochastic run", steps, data(weight.one), {.color = {role, Tone::line, 0.5F}, .width = 1});
    path.line("mean of 64", steps, data(weight.mean), {.color = {role}, .dash = Dash::dash});
    path.line("FP32 master", steps, data(weight.exact),
              {.color = {Role::truth}, .end_label = ending(weight.exact)});
    path.line("nearest", steps, data(weight.nearest),
              {.color = {role}, .width = 3, .end_label = ending(weight.nearest)});

    Figure ruler{.id = "update"};
    const double w = weight.nearest.front(), gap = weight.around.above - w;
    ruler.title = fmt::format("One update is {} % of what nearest needs to round up",
                              format_number(100 * params.update / (gap / 2)));
    ruler.x = {.label = "weight", .range = Range{w - 1.25 * gap, w + 2.25 * gap}};
    ruler.y = {.range = Range{0, 1}, .visible = false};
    ruler.xspan("rounds back", (weight.around.below + w) / 2, w + gap / 2, {.color = {role}});
    for (const double mark : {weight.around.below, w, w + gap, w + 2 * gap})
        ruler.line("mark##" + screen_number(mark), data({mark, mark}), data({0.0, 0.6}),
                   {.color = {role}, .in_legend = false});
    ruler.line("update", data({w, w + params.update}), data({0.3, 0.3}),
               {.color = {Role::text}, .width = 3, .in_legend = false});
    ruler.scatter("updated", data({w + params.update}), data({0.3}),
                  {.color = {Role::text}, .marker = Marker::disc, .marker_size = 5, .in_legend = false});
    return {path, ruler};
}

}  // namespace fp8lab::adding
