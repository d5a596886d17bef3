// The figures of the part "draft" of L17.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/units.h"
#include "labs/serve/model.h"

namespace fp8lab::serve {
namespace {

constexpr double kSeven = 7;
constexpr std::size_t kPositions = 8;  // bars of the figure "acceptance"

std::vector<double> draft_lengths(std::size_t longest) {
    std::vector<double> out;
    for (std::size_t g = 1; g <= longest; ++g) out.push_back(static_cast<double>(g));
    return out;
}

// The smallest acceptance with which some length gives the speed-up, where each token is accepted by itself.
double acceptance_for(double speedup, double cost) {
    constexpr int kLongest = 1000;
    const auto reaches = [&](double alpha) {
        double tokens = 1, passed = 1;
        for (int g = 1; g <= kLongest; ++g) {
            tokens += passed *= alpha;
            if (tokens / (g * cost + 1) >= speedup) return true;
        }
        return false;
    };
    double low = 0, high = 1;
    if (!reaches(high)) return std::numeric_limits<double>::infinity();
    for (int i = 0; i < 40; ++i) (reaches((low + high) / 2) ? high : low) = (low + high) / 2;
    return high;
}

// What acceptance varies by over the first positions, in per cent.
std::pair<double, double> accepted_pct(const DraftRun& run) {
    double least = 100, most = 0;
    for (std::size_t k = 0; k < std::min(kPositions, run.longest()); ++k) {
        if (!std::isfinite(run.by_position[k])) continue;
        least = std::min(least, 100 * run.by_position[k]), most = std::max(most, 100 * run.by_position[k]);
    }
    return {least, most};
}

}  // namespace

std::string needed_for_seven(double cost) {
    constexpr double kSame = 1e-9;
    if (std::fabs(cost - 1 / kSeven) < kSame) return "every token accepted and drafts without end";
    if (cost > 1 / kSeven) return "draft tokens for less than 1/7 of a pass";
    const double alpha = acceptance_for(kSeven, cost);
    return std::isfinite(alpha) ? fmt::format("{:.1f} % accepted", 100 * alpha)
                                : std::string("nearly every token accepted, over 1 000 of them");
}

std::string speedup_title(const Drafts& drafts, const DraftPrice& price) {
    const DraftCurve* chosen = drafts.chosen();
    if (!chosen) return {};
    const double cost = price.of(chosen->bits);
    const std::size_t best = chosen->run.best_length(cost);
    const double speedup = chosen->run.speedup(best, cost);
    const std::string worth = speedup > 1 ? fmt::format("worth {:.2f}×", speedup) : "never pays";
    return fmt::format("Of an {} draft’s tokens {:.0f} % are accepted: {}; 7× needs {}",
                       label_of(chosen->format->id), 100 * chosen->run.alpha, worth, needed_for_seven(cost));
}

std::string acceptance_title(const Drafts& drafts) {
    if (!drafts.chosen()) return {};
    const auto [least, most] = accepted_pct(drafts.chosen()->run);
    return fmt::format("Each position: {:.0f} to {:.0f} % accepted", least, most);
}

std::string round_title(const DraftRound& round) {
    if (!round.known()) return {};
    const std::size_t proposed = round.proposed.size();
    return fmt::format("One verification: {} of {} accepted, so {} token{} for one pass of the target",
                       round.accepted, proposed, round.accepted + 1, round.accepted == 0 ? "" : "s");
}

Figure speedup_figure(const Drafts& drafts, const DraftPrice& price, int length) {
    Figure figure{.id = "speedup",
                  .title = speedup_title(drafts, price),
                  .x = {.label = "draft length, tokens", .range = Range{1, kLongestDraft}},
                  .y = {.label = "speed-up ×"}};
    if (!drafts.chosen()) return figure;
    figure.words = {figure.title + "."};
    figure.x.range = Range{1, static_cast<double>(drafts.longest())};
    figure.vline("", std::min(length, drafts.longest()), kHairline);
    figure.hline("target alone", 1, {.color = {Role::axis}, .width = 1, .dash = Dash::dash});
    double least = 1, most = 1;
    for (std::size_t i = drafts.curves.size(); i-- > 0;) {
        const DraftCurve& curve = drafts.curves[i];
        const double cost = price.of(curve.bits);
        std::vector<double> y;
        for (std::size_t g = 1; g <= curve.run.longest(); ++g) y.push_back(curve.run.speedup(g, cost));
        const std::size_t best = curve.run.best_length(cost);
        least = std::min(least, *std::ranges::min_element(y)), most = std::max(most, y[best - 1]);
        const std::string name(label_of(curve.format->id));
        figure.words.push_back(fmt::format(
            "{}: at most {:.2f} times as fast, with {} tokens; {:.2f} times with {}; one token costs "
            "{} passes of the target.",
            name, y[best - 1], best, y.back(), y.size(), screen_number(cost, 3)));
        const Style style{.color = {curve.format->role},
                          .width = i == 0 ? 3.0F : 1.5F,
                          .dash = i > 0 && curve.format->role == Role::block ? Dash::dot : Dash::solid};
        figure.line(name, data(draft_lengths(curve.run.longest())), data(y), style);
        figure.scatter("", data({static_cast<double>(best)}), data({y[best - 1]}),
                       {.color = {curve.format->role},
                        .marker = Marker::disc,
                        .marker_size = i == 0 ? 5.0F : 3.5F,
                        .in_legend = false});
        if (i == 0)
            figure.add("",
                       TextMark{.x = static_cast<double>(best),
                                .y = y[best - 1],
                                .text = fmt::format("{:.2f}×", y[best - 1]),
                                .anchor = Anchor::center,
                                .strong = true,
                                .dy = -16},
                       {.color = {curve.format->role}});
    }
    constexpr double kRoom = 0.3;  // for the value above the best
    figure.y.range = Range{std::max(0.0, least - 0.15), most + kRoom * (most - least)};
    return figure;
}

Figure acceptance_figure(const Drafts& drafts) {
    Figure figure{.id = "acceptance",
                  .title = acceptance_title(drafts),
                  .x = {.label = "position in the draft", .range = Range{0.5, kPositions + 0.5}},
                  .y = {.label = "accepted %", .range = Range{0, 110}}};
    const DraftCurve* chosen = drafts.chosen();
    if (!chosen) return figure;
    figure.words = {figure.title + "."};
    constexpr double kHalfWidth = 0.36;
    for (std::size_t k = 0; k < std::min(kPositions, chosen->run.longest()); ++k) {
        const double accepted = 100 * chosen->run.by_position[k], at = static_cast<double>(k + 1);
        figure.words.push_back(fmt::format("Position {}: {} %, of {} drafts that came there.", k + 1,
                                           screen_number(accepted, 3), chosen->run.reached[k]));
        figure.bars(k == 0 ? label_of(chosen->format->id) : "", data({at - kHalfWidth, at + kHalfWidth}),
                    data({accepted}), {.color = {chosen->format->role, Tone::fill}, .in_legend = false});
    }
    return figure;
}

}  // namespace fp8lab::serve
