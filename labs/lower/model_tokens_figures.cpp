// The figures of the experiment tokens.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "labs/lower/model.h"
#include "labs/lower/model_tokens.h"

namespace fp8lab::lower {
namespace {

std::string_view label_of(const std::string& format) { return find_low_format(format, "format").label; }

bool is_chosen(const Tokens& tokens, const ImportanceInfo& info) {
    return !tokens.request.wide.layers && tokens.request.wide.important == info.name;
}

// The one that is set carries the message; the others differ by their marks.
Style style_of(const Tokens& tokens, const ImportanceInfo& info) {
    constexpr std::array kMarkers = {Marker::disc,          Marker::square,  Marker::triangle_up,
                                     Marker::triangle_down, Marker::diamond, Marker::none,
                                     Marker::ring};
    const auto at = static_cast<std::size_t>(&info - importances().data());
    Style out{.color = {Role::muted}, .width = 1.5F, .marker = kMarkers.at(at)};
    if (info.id == Importance::random) out.color = {Role::axis}, out.dash = Dash::dash, out.width = 2;
    if (info.id == Importance::oracle) out.dash = Dash::dot;
    if (is_chosen(tokens, info)) out.color = {Role::text}, out.width = 3;
    return out;
}

std::vector<double> at_shares() { return {kShares.begin(), kShares.end()}; }

std::string layers_words(const WideSpec& wide) {
    std::string out;
    for (std::size_t l = 0; l < kLinears.size(); ++l)
        if (wide.high.at(l)) out += (out.empty() ? "" : ", ") + std::string(kLinears.at(l));
    return out.empty() ? "No layer" : out;
}

// The own choice, over all lines.
void add_own(const Tokens& tokens, Figure& figure, double y) {
    figure.scatter("##own", data({tokens.share_pct}), data({y}),
                   {.color = {Role::text}, .marker = Marker::diamond, .marker_size = 7, .in_legend = false});
}

}  // namespace

std::string tokens_title(const Tokens& tokens) {
    if (!tokens.sweep) return {};
    const auto& [spec, wide] = tokens.request;
    const std::string_view high = label_of(spec.high);
    const std::string share = fmt::format("{} %", screen_number(tokens.share_pct, 3));
    if (wide.layers)
        return fmt::format("{} in {}, {} of the work: {}", layers_words(wide), high, share,
                           divergence_text(tokens.divergence));
    const auto info = std::ranges::find(importances(), wide.important, &ImportanceInfo::name);
    return fmt::format("{} of the tokens in {}, {}: {}", share, high, info->label,
                       divergence_text(tokens.divergence));
}

std::string token_ratio_title(const Tokens& tokens) {
    if (!tokens.sweep) return {};
    return fmt::format("{} of the divergence with as many tokens at random",
                       screen_number(tokens.ratio(), 3));
}

Figure tokens_figure(const Tokens& tokens) {
    Figure figure{.id = "tokens", .title = tokens_title(tokens)};
    if (!tokens.sweep) return figure;
    const TokensSweep& sweep = *tokens.sweep;
    figure.x = {.label = fmt::format("% of the work in {}, the rest in {}", label_of(sweep.spec.high),
                                     label_of(sweep.spec.low)),
                .range = Range{0, 100}};
    double most = sweep.lines.front().values.front();
    for (const ImportanceLine& line : sweep.lines)
        most = std::max(most, *std::ranges::max_element(line.values));
    for (const double value : sweep.subsets) most = std::max(most, value);
    figure.y = {.label = fmt::format("divergence from BF16, nats; {} tokens", sweep.tokens),
                .range = Range{0, 1.1 * most}};
    if (!sweep.subsets.empty())
        figure.scatter(
            "choices of layers", data(sweep.subset_shares), data(sweep.subsets),
            {.color = {Role::accent, Tone::fill, 0.6F}, .marker = Marker::disc, .marker_size = 2.5F});
    figure.band("##draws", data(at_shares()), data(sweep.least_random), data(sweep.most_random),
                {.color = {Role::axis, Tone::fill, 0.4F}, .in_legend = false});
    for (const ImportanceInfo& info : importances()) {
        Style style = style_of(tokens, info);
        style.in_legend =
            is_chosen(tokens, info) || info.id == Importance::random || info.id == Importance::oracle;
        figure.line(std::string(info.label), data(at_shares()), data(sweep.line(info.id).values), style);
    }
    add_own(tokens, figure, tokens.divergence);
    return figure;
}

Figure token_ratio_figure(const Tokens& tokens) {
    Figure figure{.id = "token_ratio",
                  .title = token_ratio_title(tokens),
                  .x = {.label = "% of the tokens", .range = Range{0, 80}},
                  .y = {.label = "divergence, at random = 1"}};
    if (!tokens.sweep) return figure;
    const TokensSweep& sweep = *tokens.sweep;
    const std::vector<double>& random = sweep.line(Importance::random).values;
    double least = 1, most = 1;
    const std::vector<double> shares(kShares.begin() + 1, kShares.end() - 1);
    for (const ImportanceInfo& info : importances()) {
        std::vector<double> ratios;
        for (std::size_t i = 0; i < shares.size(); ++i) {
            ratios.push_back(sweep.line(info.id).values[i + 1] / random[i + 1]);
            least = std::min(least, ratios.back()), most = std::max(most, ratios.back());
        }
        figure.line(std::string(info.label), data(shares), data(std::move(ratios)), style_of(tokens, info));
    }
    figure.y.range = Range{std::min(least, tokens.ratio()) - 0.05, std::max(most, tokens.ratio()) + 0.05};
    if (tokens.share_pct >= figure.x.range->lo && tokens.share_pct <= figure.x.range->hi)
        add_own(tokens, figure, tokens.ratio());
    return figure;
}

}  // namespace fp8lab::lower
