// The figures of the part "rollout" of L17.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/base/units.h"
#include "labs/serve/parts/model_rollout.h"

namespace fp8lab::serve {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr double kWidest = 4, kBin = 0.125;  // of the histogram, in binades
constexpr double kLeastShare_pct = 0.002;    // less than one token of all draws

Style look_of(const RolloutEngine& engine, bool chosen) {
    const bool bf16 = engine.format == "bf16";
    return {.color = {bf16 ? Role::bf16 : find_low_format(engine.format, "rollout").role},
            .width = chosen ? 3.0F : 1.5F,
            .dash = bf16               ? Dash::long_dash
                    : engine.fp8_cache ? Dash::dot
                                       : Dash::solid};
}

std::vector<double> answer_lengths(int longest) {
    std::vector<double> out;
    for (int t = 1; t <= longest; ++t) out.push_back(t);
    return out;
}

bool equal_engines(const RolloutLine& line) { return line.mean_abs_d() == 0; }

}  // namespace

std::string ess_title(const Rollouts& rollouts, int tokens, const std::string& truncate) {
    const RolloutLine* chosen = rollouts.chosen();
    if (!chosen) return {};
    const int length = std::min(tokens, chosen->longest()), answers = rollouts.spec.answers;
    const auto count = [&](double most) {
        const double counted = chosen->median_ess_pct(length, most) * answers / 100;
        return counted < 9.95 ? fmt::format("{:.1f}", counted) : fmt::format("{:.0f}", counted);
    };
    std::string out = fmt::format("After {} token{} {} answers of {} count as {}", length,
                                  length == 1 ? "" : "s", answers, name_of(chosen->engine),
                                  equal_engines(*chosen) ? std::to_string(answers) : count(kNoLimit));
    if (truncate != "off")
        out += fmt::format("; cut at {} as {}, with a bias", truncate, count(truncation_of(truncate)));
    return out;
}

std::string ratios_title(const Rollouts& rollouts) {
    const RolloutLine* chosen = rollouts.chosen();
    if (!chosen) return {};
    if (equal_engines(*chosen)) return "Equal engines: every ratio is exactly 1";
    return fmt::format("{} % of the tokens: ratio above 2", screen_number(chosen->over_2_pct(), 2));
}

Figure ess_figure(const Rollouts& rollouts, int tokens, const std::string& truncate) {
    Figure figure{.id = "ess",
                  .title = ess_title(rollouts, tokens, truncate),
                  .x = {.label = "tokens of an answer", .range = Range{1, kMostTokens}},
                  .y = {.label = "effective sample size %", .scale = Scale::log10, .range = Range{1, 140}}};
    const RolloutLine* chosen = rollouts.chosen();
    if (!chosen) return figure;
    figure.words = {figure.title + "."};
    figure.x.range = Range{1, std::max(2.0, static_cast<double>(chosen->longest()))};
    figure.vline("", std::min(tokens, chosen->longest()), kHairline);
    figure.hline("the trainer", 100, {.color = {Role::axis}, .width = 1, .dash = Dash::dash});
    std::vector<double> least, most;
    for (int t = 1; t <= chosen->longest(); ++t) {
        const std::vector<double> draws = chosen->ess_pct(t, kNoLimit);
        least.push_back(draws.front()), most.push_back(draws.back());
    }
    figure.band("", data(answer_lengths(chosen->longest())), data(least), data(most),
                {.color = {look_of(chosen->engine, true).color.role, Tone::tint}, .in_legend = false});
    double lowest = *std::ranges::min_element(least);
    for (std::size_t i = rollouts.lines.size(); i-- > 0;) {
        const RolloutLine& line = rollouts.lines[i];
        std::vector<double> y;
        for (int t = 1; t <= line.longest(); ++t) y.push_back(line.median_ess_pct(t, kNoLimit));
        lowest = std::min(lowest, *std::ranges::min_element(y));
        const std::vector<double> last = line.ess_pct(line.longest(), kNoLimit);
        figure.words.push_back(fmt::format("{}: {} % after {} tokens, the median of {} draws ({} to {}).",
                                           name_of(line.engine), screen_number(y.back(), 3), line.longest(),
                                           line.draws.size(), screen_number(last.front(), 3),
                                           screen_number(last.back(), 3)));
        figure.line(name_of(line.engine), data(answer_lengths(line.longest())), data(std::move(y)),
                    look_of(line.engine, i == 0));
    }
    figure.y.range = Range{std::min(0.8 * lowest, 50.0), 140};
    if (truncate == "off") return figure;
    std::vector<double> cut;
    for (int t = 1; t <= chosen->longest(); ++t)
        cut.push_back(chosen->median_ess_pct(t, truncation_of(truncate)));
    figure.words.push_back(fmt::format("{}, weights cut at {}: {} % after {} tokens.",
                                       name_of(chosen->engine), truncate, screen_number(cut.back(), 3),
                                       cut.size()));
    figure.line(fmt::format("cut at {}", truncate), data(answer_lengths(chosen->longest())),
                data(std::move(cut)),
                {.color = look_of(chosen->engine, true).color, .width = 2, .dash = Dash::dash});
    return figure;
}

Figure ratios_figure(const Rollouts& rollouts) {
    Figure figure{.id = "ratios",
                  .title = ratios_title(rollouts),
                  .x = {.label = "log2 of p trainer / p rollout", .range = Range{-kWidest, kWidest}},
                  .y = {.label = "tokens %", .scale = Scale::log10, .range = Range{kLeastShare_pct, 200}}};
    const RolloutLine* chosen = rollouts.chosen();
    if (!chosen) return figure;
    // The middle bin is around 0.
    const auto bins = static_cast<std::size_t>(2 * kWidest / kBin) + 1;
    std::vector<double> edges, shares(bins);
    for (std::size_t b = 0; b <= bins; ++b)
        edges.push_back(-kWidest - kBin / 2 + kBin * static_cast<double>(b));
    double tokens = 0, outside = 0;
    for (const Rollout& draw : chosen->draws)
        for (const double d : draw.d.values) {
            const double bin = std::floor((d / std::numbers::ln2 - edges.front()) / kBin);
            ++tokens;
            if (bin < 0 || bin >= static_cast<double>(bins))
                ++outside;
            else
                ++shares[static_cast<std::size_t>(bin)];
        }
    for (double& share : shares) share *= 100 / tokens;
    figure.words = {
        figure.title + ".",
        fmt::format("Mean of |log ratio| {}, KL {} nats per token; {} of {} tokens are outside 1/16 to 16.",
                    screen_number(chosen->mean_abs_d(), 3), screen_number(chosen->kl(), 3), outside, tokens)};
    figure.add(name_of(chosen->engine),
               BarSeries{data(std::move(edges)), data(std::move(shares)), kLeastShare_pct},
               {.color = {look_of(chosen->engine, true).color.role, Tone::fill}, .in_legend = false});
    for (const double at : {-1.0, 1.0})
        figure.vline("", at, {.color = {Role::axis}, .width = 1, .dash = Dash::dash, .in_legend = false});
    return figure;
}

}  // namespace fp8lab::serve
