// The figures "mass" and "keys" of L14: where the probability is and what a cast loses of it, and the loss over the
// length of the context.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "labs/wide/model.h"

namespace fp8lab::wide {
namespace {

constexpr double kShortAxis = -36, kTopEnd = 0.5;  // log2(p / max p) at the ends
constexpr double kLeastShown_pct = 0.001;          // of the probability, in "keys"
constexpr std::array kDashes = {Dash::solid, Dash::long_dash, Dash::dash, Dash::dot};

Role role_of(std::string_view format) { return find_format(format).role; }

// Further left where more than 1 % of the keys are there.
double left_end(const Attention& a) {
    double keys = 0;
    for (std::size_t b = 0; b < a.keys_pct.size(); ++b) {
        keys += a.keys_pct[b];
        if (keys > 1)
            return std::min(kShortAxis, 4 * std::floor((kLowestBinade + static_cast<double>(b)) / 4));
    }
    return kShortAxis;
}

std::string loses(double pct) { return fmt::format("{} %", share_text(pct)); }

// The words at one line: its name, and what the cast loses.
struct Label {
    std::string name, loses;
    double x;
    bool chosen, left;
};

void add_label(Figure& figure, const Label& label, Role role, double top, Range room) {
    const float dx = label.left ? -8 : 8;
    const Anchor anchor = label.left ? Anchor::right : Anchor::left;
    const Color ink{label.chosen ? role : Role::muted, Tone::ink};
    figure.add("",
               TextMark{.x = std::exp2(label.x),
                        .y = top,
                        .text = label.name,
                        .anchor = anchor,
                        .dx = dx,
                        .dy = 14,
                        .room = Range{std::exp2(room.lo), std::exp2(room.hi)}},
               {.color = ink, .in_legend = false});
    figure.add("",
               TextMark{.x = std::exp2(label.x),
                        .y = top,
                        .text = label.loses,
                        .anchor = anchor,
                        .strong = label.chosen,
                        .dx = dx,
                        .dy = 34,
                        .room = Range{std::exp2(room.lo), std::exp2(room.hi)}},
               {.color = {label.chosen ? role : Role::text, Tone::ink}, .in_legend = false});
}

void add_lines(Figure& figure, const Attention& a, std::size_t cast, Range x, double top) {
    const Role role = role_of(a.spec.format);
    std::array<double, 4> at = {};
    for (std::size_t c = 0; c < kCasts.size(); ++c) at[c] = a.cut_log2(c);
    if (at[cast] > x.lo)
        figure.xspan("", std::exp2(std::max(at[cast], x.lo)), std::exp2(x.hi),
                     {.color = {role}, .in_legend = false});
    for (std::size_t c = 0; c < kCasts.size(); ++c) {
        if (at[c] <= x.lo) continue;
        const bool chosen = c == cast;
        figure.vline("", std::exp2(at[c]),
                     {.color = {role, Tone::line},
                      .width = chosen ? 3.0F : 1.5F,
                      .dash = chosen ? Dash::solid : Dash::dash,
                      .in_legend = false});
    }
    const auto words = [&](std::size_t c) { return loses(a.casts[c].lost_pct); };
    if (at[3] > x.lo) {
        const bool one = cast >= 2;
        const std::string both = fmt::format("lose {}, {}", words(2), words(3));
        add_label(figure, {"× 256 and × 448", both, at[3], one, true}, role, top, {x.lo, at[3]});
    }
    if (at[1] > x.lo)
        add_label(figure, {"exp(s − max) × 1", "loses " + words(1), at[1], cast == 1, true}, role, top,
                  {std::max(at[2], x.lo), at[1]});
    if (at[0] > x.lo) {
        const bool left = at[0] > -6.5;
        add_label(figure, {"normalised × 1", "loses " + words(0), at[0], cast == 0, left}, role, top,
                  left ? Range{at[1], at[0]} : Range{at[0], x.hi});
    }
}

}  // namespace

std::string format_label(std::string_view format) { return std::string(find_format(format).label); }

std::string share_text(double pct) {
    if (std::isnan(pct)) return "–";
    if (pct >= 1000) return "> 1 000";
    if (pct == 0) return "0";
    if (pct == 100) return "100";
    if (pct < 0.0005) return "< 0.001";
    if (pct < 0.95) return screen_number(pct, pct < 0.01 ? 1 : 2);
    return fmt::format("{:.{}f}", pct, pct >= 99.95 && pct < 100 ? 2 : 1);
}

std::string mass_title(const Attention& a, std::size_t cast) {
    const std::string format = format_label(a.spec.format);
    const CastOutcome& chosen = a.casts[cast];
    if (chosen.lost_pct >= 100) return fmt::format("{}: the whole row is lost", kCasts[cast].label);
    if (chosen.lost_pct < 0.01)
        return fmt::format("{}: nothing is lost at {} keys", kCasts[cast].label,
                           group_thousands(a.spec.keys));
    return fmt::format("Normalised first, {} % of the attention falls below {}; scaled by 448, {} %",
                       share_text(a.casts[0].lost_pct), format, share_text(a.casts[3].lost_pct));
}

Figure mass_figure(const Attention& a, std::size_t cast) {
    Figure figure{.id = "mass",
                  .x = {.label = "p / max p",
                        .scale = Scale::log2,
                        .range = Range{std::exp2(kShortAxis), std::exp2(kTopEnd)}},
                  .y = {.label = "% per binade", .range = Range{0, 20}}};
    if (a.mass_pct.empty()) return figure;
    figure.title = mass_title(a, cast);
    const Range x{left_end(a), kTopEnd};  // log2
    figure.x.range = Range{std::exp2(x.lo), std::exp2(x.hi)};
    std::vector<double> edges, mass, kept, keys;
    for (std::size_t b = static_cast<std::size_t>(x.lo - kLowestBinade); b < a.mass_pct.size(); ++b) {
        edges.push_back(std::exp2(kLowestBinade + static_cast<double>(b)));
        mass.push_back(a.mass_pct[b]);
        kept.push_back(a.mass_pct[b] - a.lost_pct[cast][b]);
        keys.push_back(a.keys_pct[b]);
    }
    edges.push_back(std::exp2(kTopEnd));
    double others = 0;
    for (std::size_t i = 0; i + 1 < mass.size(); ++i) others = std::max({others, mass[i], keys[i]});
    const double top = std::max({1.16 * mass.back(), 1.16 * keys.back(), 1.45 * others});
    figure.y.range = Range{0, top};
    add_lines(figure, a, cast, x, top);
    const Role role = role_of(a.spec.format);
    const Data at = data(edges);
    figure.bars("lost", at, data(mass), {.color = {Role::under}, .in_legend = false});
    figure.bars("probability", at, data(kept), {.color = {role}});
    figure.bars("keys", at, data(keys), {.color = {Role::text}, .width = 1.5F}, true);
    if (mass.back() > 1.25 * others) {
        const auto words = [&](const char* text, float dy, Role ink) {
            figure.add(
                "largest",
                TextMark{.x = 1, .y = mass.back(), .text = text, .anchor = Anchor::right, .dx = -8, .dy = dy},
                {.color = {ink, Tone::ink}, .in_legend = false});
        };
        const bool under_label = a.cut_log2(0) <= -6.5 && mass.back() > 0.75 * top;
        const float down = under_label ? 36 : 8;
        words("the largest key", down, Role::muted);
        words(fmt::format("{} %", share_text(a.largest_pct)).c_str(), down + 18, Role::text);
    }
    figure.words = {figure.title + "."};
    for (std::size_t c = 0; c < kCasts.size(); ++c)
        figure.words.push_back(fmt::format("{}: {} % of the keys become 0, {} % of the probability is lost.",
                                           kCasts[c].label, share_text(a.casts[c].zero_pct),
                                           share_text(a.casts[c].lost_pct)));
    figure.words.push_back(fmt::format("The largest key of a row holds {} % of it, mean of {} rows.",
                                       share_text(a.largest_pct), kRows));
    return figure;
}

std::string keys_title(const std::vector<SweepPoint>& sweep) {
    if (sweep.empty()) return {};  // before the first result
    for (const SweepPoint& point : sweep)
        for (const double lost : point.lost_pct)
            if (lost >= kLeastShown_pct) return "Each doubling of the context loses more";
    return "Nothing is lost at any length";
}

Figure keys_figure(const std::vector<SweepPoint>& sweep, const Attention& a, std::size_t cast) {
    Figure figure{
        .id = "keys",
        .title = keys_title(sweep),
        .x = {.label = "keys", .scale = Scale::log2, .range = Range{kLeastKeys, kMostKeys}},
        .y = {.label = "% of probability lost", .scale = Scale::log10, .range = Range{kLeastShown_pct, 100}}};
    const Role role = role_of(a.spec.format);
    figure.vline("", a.spec.keys, {.color = {Role::axis}, .width = 1, .in_legend = false});
    std::vector<double> disc_x, disc_y;
    for (std::size_t c = 0; c < kCasts.size(); ++c) {
        std::vector<double> keys, lost;
        for (const SweepPoint& point : sweep) {
            keys.push_back(point.keys);
            lost.push_back(point.lost_pct[c] > 0 ? point.lost_pct[c] : std::nan(""));
            if (point.keys == a.spec.keys && point.lost_pct[c] >= kLeastShown_pct)
                disc_x.push_back(point.keys), disc_y.push_back(point.lost_pct[c]);
        }
        figure.line(
            std::string(kCasts[c].label), data(keys), data(lost),
            {.color = {role}, .width = c == cast ? 3.0F : 2.0F, .dash = kDashes[c], .in_legend = false});
        if (!sweep.empty())
            figure.words.push_back(fmt::format(
                "{}: {} % at {} keys, {} % at {}.", kCasts[c].label, share_text(sweep.front().lost_pct[c]),
                kLeastKeys, share_text(sweep.back().lost_pct[c]), group_thousands(kMostKeys)));
    }
    figure.scatter("", data(disc_x), data(disc_y),
                   {.color = {role}, .marker = Marker::disc, .marker_size = 4.5F, .in_legend = false});
    if (!figure.title.empty()) figure.words.insert(figure.words.begin(), figure.title + ".");
    return figure;
}

}  // namespace fp8lab::wide
