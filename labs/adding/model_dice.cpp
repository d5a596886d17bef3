#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "core/formats/codec.h"
#include "core/threads/parallel.h"
#include "labs/adding/model.h"

namespace fp8lab::adding {

namespace {

constexpr std::size_t kPoints = 97;  // over the power of two
constexpr int kElements = 16384;     // of the tensor

void add_sweep(Dice& dice, const Params& params) {
    const double low = std::exp2(std::floor(std::log2(params.x)));
    const double gap =
        std::exp2(std::max(std::log2(low), std::log2(min_normal(dice.format))) - dice.format.mantissa_bits);
    const auto seed = static_cast<std::uint64_t>(params.seed);
    for (std::vector<double>* column : {&dice.xs, &dice.nearest, &dice.mean, &dice.deviation})
        column->resize(kPoints);
    parallel_for(kPoints, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            // Off the grid and its midpoints, where nearest would depend on the tie.
            const double x = low * (1 + (static_cast<double>(i) + 0.37) / kPoints);
            const RoundedDraws nearest = draw_rounded(dice.format, Method::nearest, x, 1, seed);
            const RoundedDraws drawn =
                draw_rounded(dice.format, kMethods[dice.chosen], x, params.draws, seed + i + 1);
            dice.xs[i] = x;
            dice.nearest[i] = (nearest.mean - x) / gap;
            dice.mean[i] = (drawn.mean - x) / gap;
            dice.deviation[i] = drawn.deviation / gap;
        }
    });
}

std::string dice_title(const Dice& dice, const Params& params) {
    const RoundedDraws& drawn = dice.draws[dice.chosen];
    const std::string n = group_thousands(params.draws), x = screen_number(params.x),
                      mean = screen_number(drawn.mean);
    switch (drawn.method) {
        case Method::nearest:
            return fmt::format("Rounding to nearest turns {} into {} every time", x, mean);
        case Method::stochastic:
            return params.draws == 1
                       ? fmt::format("One draw of {} gives {}", x, mean)
                       : fmt::format("No draw is {}, but the mean of {} draws is {}", x, n, mean);
        case Method::integer:
            return drawn.off_grid_pct > 0
                       ? fmt::format(
                             "{} % of the notebook’s results are not {} values; stored, the mean is {}",
                             format_number(drawn.off_grid_pct, 3), dice.format.label, mean)
                       : fmt::format("With the notebook’s noise of one unit {} has the mean {}", x, mean);
        case Method::constant:
            return fmt::format("With noise of constant size {} has the mean {}", x, mean);
    }
    return {};
}

Figure dice_figure(const Outcome& outcome, const Params& params) {
    const Dice& dice = outcome.dice;
    const RoundedDraws& drawn = dice.draws[dice.chosen];
    Figure figure{.id = "dice", .title = dice_title(dice, params)};
    const double gap = std::max(dice.around.above - dice.around.below, params.x / 64);
    double lo = dice.around.below - gap, hi = dice.around.above + gap;
    for (const auto& [value, count] : drawn.returned) lo = std::min(lo, value), hi = std::max(hi, value);
    figure.x = {.label = "value", .range = Range{lo - gap / 4, hi + gap / 4}};
    figure.y = {.label = "% of draws", .range = Range{0, 118}};
    // The codes of positive values ascend with them.
    const std::uint32_t code = encode(dice.format, static_cast<float>(dice.around.below));
    for (std::uint32_t c = code - std::min(code, 3U); c <= std::min(code + 4, max_code(dice.format)); ++c)
        if (const double mark = value_of(dice.format, c); mark >= lo - gap / 4 && mark <= hi + gap / 4)
            figure.line("mark##" + std::to_string(c), data({mark, mark}), data({0, 103}),  // below the words
                        {.color = {dice.format.role, Tone::line, 0.5F}, .width = 1, .in_legend = false});
    const auto bars = [&](const std::string& name, const std::map<double, int>& counts, Color color,
                          double width) {
        std::vector<double> edges, heights;
        for (const auto& [value, count] : counts) {
            if (!edges.empty()) heights.push_back(0);
            edges.push_back(value - width * gap);
            edges.push_back(value + width * gap);
            heights.push_back(100.0 * count / drawn.draws);
        }
        figure.bars(name, data(std::move(edges)), data(std::move(heights)), {.color = color});
    };
    bars("stored", drawn.stored, {dice.format.role, Tone::fill}, 0.06);
    std::map<double, int> off_grid = drawn.returned;
    std::erase_if(off_grid, [&](const auto& value) { return drawn.stored.contains(value.first); });
    if (!off_grid.empty()) bars("returned, not on the grid", off_grid, {Role::sat, Tone::fill}, 0.02);
    // Words on the sides that face away from each other.
    const bool mean_right = drawn.mean >= params.x;
    const auto line = [&](double at, const std::string& words, bool right, Dash dash) {
        figure.vline("line##" + words, at,
                     {.color = {Role::text}, .width = 2, .dash = dash, .in_legend = false});
        figure.add("",
                   TextMark{.x = at,
                            .y = 110,
                            .text = words,
                            .anchor = right ? Anchor::left : Anchor::right,
                            .dx = right ? 8.0F : -8.0F},
                   {.color = {Role::text}, .in_legend = false});
    };
    line(params.x, "x " + screen_number(params.x), !mean_right, Dash::solid);
    line(drawn.mean, "mean " + screen_number(drawn.mean), mean_right, Dash::dash);
    return figure;
}

std::string bias_title(const Dice& dice, const Params& params) {
    constexpr double kBiased = 0.25;  // gaps
    if (dice.chosen == 0) return "Rounding to nearest is off by up to half a gap, every time by the same";
    if (params.draws == 1) return "One draw is off by up to a whole gap";
    const std::string draws = group_thousands(params.draws);
    const double worst = std::abs(std::ranges::max(dice.mean, {}, [](double e) { return std::abs(e); }));
    return worst < kBiased
               ? fmt::format("Mean of {} draws: its error vanishes, the spread of one draw stays", draws)
               : fmt::format("Mean of {} draws: still off by up to {} of a gap", draws,
                             format_number(worst, 2));
}

Figure bias_figure(const Outcome& outcome, const Params& params) {
    const Dice& dice = outcome.dice;
    Figure figure{.id = "bias"};
    figure.title = bias_title(dice, params);
    figure.x = {.label = "x"};
    figure.y = {.label = "error, gaps", .range = Range{-1.25, 1.25}};
    std::vector<double> low, high;
    for (std::size_t i = 0; i < dice.xs.size(); ++i) {
        low.push_back(dice.mean[i] - dice.deviation[i]);
        high.push_back(dice.mean[i] + dice.deviation[i]);
    }
    const Role role = dice.format.role;
    const Data xs = data(dice.xs);
    if (dice.chosen != 0 && params.draws > 1)
        figure.band("one draw, ± one standard deviation", xs, data(std::move(low)), data(std::move(high)),
                    {.color = {role}});
    figure.hline("0", 0, {.color = {Role::axis}, .width = 1, .in_legend = false});
    figure.line("nearest", xs, data(dice.nearest), {.color = {Role::muted}, .width = 2});
    if (dice.chosen != 0)
        figure.line(params.draws == 1 ? "one draw" : "mean", xs, data(dice.mean),
                    {.color = {role}, .width = 3});
    figure.vline("x", params.x, {.color = {Role::text}, .width = 1, .in_legend = false});
    return figure;
}

}  // namespace

Dice make_dice(const Params& params) {
    Dice out;
    out.format = find_format(params.format);
    const auto seed = static_cast<std::uint64_t>(params.seed);
    out.around = neighbours(out.format, params.x);
    out.chosen = static_cast<std::size_t>(std::ranges::find(kMethods, parse_method(params.rounding)) -
                                          kMethods.begin());
    std::vector<float> tensor(kElements);
    Rng(seed).fill_normal(tensor);
    for (const Method method : kMethods) {
        out.draws.push_back(draw_rounded(out.format, method, params.x, params.draws, seed));
        out.tensors.push_back(cast_tensor(out.format, method, tensor, seed));
    }
    add_sweep(out, params);
    return out;
}

std::vector<Figure> dice_figures(const Outcome& outcome, const Params& params) {
    return {dice_figure(outcome, params), bias_figure(outcome, params)};
}

}  // namespace fp8lab::adding
