// The figures of the part "routing" of L18.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "labs/experts/model_casts.h"
#include "labs/experts/model_routing.h"

namespace fp8lab::experts {
namespace {

// A bar has the colour of what moves its tokens: of the layers, or of the router behind BF16 layers.
Role bar_role(const Pair& pair) { return role_of(pair.layers == "bf16" ? pair.router : pair.layers); }

std::string tenth_text(double pct) { return fmt::format("{:.1f}", pct); }

// "1/32" of a power of two below 1.
std::string fraction(double power) { return fmt::format("1/{:.0f}", 1 / power); }

const PairRow* row_of(const Pairs& pairs, const Pair& pair) {
    const auto hit = std::ranges::find(pairs.rows, pair, &PairRow::pair);
    return hit == pairs.rows.end() ? nullptr : &*hit;
}

}  // namespace

std::string changed_title(const Pairs& pairs) {
    if (pairs.rows.empty()) return {};
    const Pair& chosen = pairs.chosen;
    if (chosen == Pair{"bf16", "fp32"})
        return "BF16 layers with a router in FP32 are the reference: no token moves";
    const PairRow* row = row_of(pairs, chosen);
    if (!row) return "How many tokens do fewer bits move to other experts?";
    const std::string pct = tenth_text(row->mean());
    if (chosen.layers == "bf16")
        return fmt::format("A router in {} moves {} % of the tokens; the layers are in BF16",
                           label_of(chosen.router), pct);
    return fmt::format("{} layers move {} % of the tokens to other experts; the router is in {}",
                       label_of(chosen.layers), pct, label_of(chosen.router));
}

std::string margin_title(const Routed& routed) {
    if (routed.tokens == 0) return {};
    const Margins& m = routed.margins;
    if (m.all_below == 0) return "No token moves; most choices are closer than 1/16";
    if (m.all_below == m.most_below)
        return fmt::format("Every token that moves was a close call: below {}", fraction(m.all_below));
    return fmt::format("The tokens that move were close calls: 95 % of them below {}",
                       fraction(m.most_below));
}

Figure changed_figure(const Pairs& pairs, const Routed& routed, bool named) {
    const auto count = static_cast<double>(pairs.rows.size());
    Figure figure{.id = "changed",
                  .title = changed_title(pairs),
                  .x = {.label = "tokens whose two experts change, % of the held-out ones"},
                  .y = {.range = Range{0, std::max(count, 1.0)}, .visible = false}};
    if (pairs.rows.empty()) return figure;
    figure.words = {figure.title + "."};
    double most = 1;
    for (const PairRow& row : pairs.rows) most = std::max(most, row.most());
    figure.x.range = Range{0, named ? 1.9 * most : std::max(1.08 * most, 20.0)};
    for (std::size_t i = 0; i < pairs.rows.size(); ++i) {
        const PairRow& row = pairs.rows[i];
        const double middle = count - 0.5 - static_cast<double>(i);
        const std::string words = pair_words(row.pair);
        figure.band(words, data({0, row.mean()}), data({middle - 0.22, middle - 0.22}),
                    data({middle + 0.22, middle + 0.22}),
                    {.color = {bar_role(row.pair), Tone::fill}, .in_legend = false});
        figure.line("", data({row.least(), row.most()}), data({middle, middle}),
                    {.color = {Role::text}, .width = 1, .in_legend = false});
        const bool chosen = row.pair == pairs.chosen;
        figure.add("",
                   TextMark{.x = row.most(),
                            .y = middle,
                            .text = named ? fmt::format("{} %: {}", tenth_text(row.mean()), words)
                                          : tenth_text(row.mean()),
                            .strong = chosen,
                            .dx = 8},
                   {.color = {Role::text, Tone::ink}, .in_legend = false});
        figure.words.push_back(fmt::format("{}: {} % ({} to {} in {} models).", words, tenth_text(row.mean()),
                                           tenth_text(row.least()), tenth_text(row.most()),
                                           row.changed_pct.size()));
        if (chosen && routed.tokens > 0 && Pair{routed.spec.layers, routed.spec.router} == row.pair)
            figure.scatter("##seed", data({routed.change.changed_pct()}), data({middle}),
                           {.color = {Role::text}, .marker = Marker::ring, .in_legend = false});
    }
    return figure;
}

Figure margin_figure(const Routed& routed) {
    Figure figure{.id = "margin",
                  .title = margin_title(routed),
                  .x = {.label = "score of the 2nd expert minus that of the 3rd", .scale = Scale::log2},
                  .y = {.label = "tokens", .scale = Scale::log10}};
    if (routed.tokens == 0) return figure;
    std::vector<double> edges;
    for (int b = 0; b <= kBins; ++b) edges.push_back(std::exp2(kFirstBin + b));
    figure.x.range = Range{edges.front(), edges.back()};
    constexpr double kLeast = 0.7;  // a bar of one token is seen
    figure.y.range = Range{kLeast, 1.5 * *std::ranges::max_element(routed.margins.tokens)};
    const Pair pair{routed.spec.layers, routed.spec.router};
    figure.add("they move", BarSeries{data(edges), data(routed.margins.moved), kLeast},
               {.color = {bar_role(pair), Tone::fill}, .in_legend = false});
    figure.add("all tokens", BarSeries{data(edges), data(routed.margins.tokens), kLeast, true},
               {.color = {Role::axis}, .width = 1, .in_legend = false});
    figure.words = {figure.title + ".",
                    fmt::format("{} tokens in each of {} blocks; {} % of all margins are below 0.01, the "
                                "largest margin of a token that moves is {}.",
                                routed.tokens, routed.change.changed_blocks.size(),
                                screen_number(routed.margin_below_1_100_pct, 3),
                                screen_number(routed.margins.largest_moved, 2))};
    return figure;
}

}  // namespace fp8lab::experts
