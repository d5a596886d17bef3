// The figures "data" and "mean" of L12: six kinds of tensor before and after the rotation, the mean of n casts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "labs/four/model.h"

namespace fp8lab::four {
namespace {

constexpr double kUpper = 0.17, kHeadX = 0.13,
                 kHeadY = 0.1;  // of a row: NVFP4's line above its middle; arrow heads

// An arrow from a to b at height y, with a head of two strokes.
void arrow(Figure& figure, const std::string& name, double a, double b, double y, const Style& style) {
    figure.line(name, data({a, b}), data({y, y}), style);
    if (std::fabs(b - a) < 0.08) return;
    const double back = b > a ? -kHeadX : kHeadX;
    Style head = style;
    head.dash = Dash::solid, head.width = 2, head.marker = Marker::none;
    figure.line("", data({b + back, b, b + back}), data({y + kHeadY, y, y - kHeadY}), head);
}

}  // namespace

std::string data_title(const std::vector<Kind>& kinds) {
    if (kinds.empty()) return {};  // before the first result
    double lifts = 0, costs = 0;
    for (const Kind& kind : kinds) {
        lifts = std::max(lifts, kind.mxfp4[1].sqnr_db - kind.mxfp4[0].sqnr_db);
        costs = std::max(costs, kind.nvfp4[0].sqnr_db - kind.nvfp4[1].sqnr_db);
    }
    return fmt::format("Rotation lifts MXFP4 by up to {:.1f} dB, costs NVFP4 {:.1f}", lifts, costs);
}

Figure data_figure(const Outcome& o) {
    Figure figure{.id = "data",
                  .title = data_title(o.kinds),
                  .x = {.label = "SQNR dB", .range = Range{15.5, 23.5}},
                  .y = {.visible = false}};
    const auto count = static_cast<double>(o.kinds.size());
    figure.y.range = Range{0, count};
    Range& range = *figure.x.range;
    for (std::size_t i = 0; i < o.kinds.size(); ++i) {
        const Kind& kind = o.kinds[i];
        const double middle = count - 0.5 - static_cast<double>(i);
        const Style nvfp4{.color = {Role::block}, .width = 3, .in_legend = false};
        const Style mxfp4{.color = {Role::text}, .width = 2, .dash = Dash::dash, .in_legend = false};
        arrow(figure, fmt::format("NVFP4, {}", kind.label), kind.nvfp4[0].sqnr_db, kind.nvfp4[1].sqnr_db,
              middle + kUpper, nvfp4);
        arrow(figure, fmt::format("MXFP4, {}", kind.label), kind.mxfp4[0].sqnr_db, kind.mxfp4[1].sqnr_db,
              middle - kUpper, mxfp4);
        figure.scatter(
            "", data({kind.nvfp4[0].sqnr_db}), data({middle + kUpper}),
            {.color = {Role::block}, .marker = Marker::diamond, .marker_size = 4.5F, .in_legend = false});
        figure.scatter(
            "", data({kind.mxfp4[0].sqnr_db}), data({middle - kUpper}),
            {.color = {Role::text}, .marker = Marker::ring, .marker_size = 4.5F, .in_legend = false});
        for (const auto* pair : {&kind.nvfp4, &kind.mxfp4})
            for (const Numbers& numbers : *pair) {
                range.lo = std::min(range.lo, numbers.sqnr_db - 0.5);
                range.hi = std::max(range.hi, numbers.sqnr_db + 0.5);
            }
        figure.words.push_back(fmt::format(
            "{}: NVFP4 {} dB as it is, {} rotated; MXFP4 {} and {}; zeros of NVFP4 {} % and {} %.",
            kind.label, db_text(kind.nvfp4[0].sqnr_db), db_text(kind.nvfp4[1].sqnr_db),
            db_text(kind.mxfp4[0].sqnr_db), db_text(kind.mxfp4[1].sqnr_db),
            pct_text(kind.nvfp4[0].zero_pct, 0), pct_text(kind.nvfp4[1].zero_pct, 0)));
    }
    if (!figure.title.empty()) figure.words.insert(figure.words.begin(), figure.title + ".");
    if (o.kinds.empty()) return figure;  // before the first update()
    // Names of the marks in the first row, on the side where no line is.
    const Kind& first = o.kinds.front();
    const double row = count - 0.5;
    figure.add("", TextMark{.x = first.nvfp4[0].sqnr_db, .y = row + kUpper, .text = "NVFP4", .dx = 10},
               {.color = {Role::block, Tone::ink}, .in_legend = false});
    figure.add("",
               TextMark{.x = first.mxfp4[0].sqnr_db,
                        .y = row - kUpper,
                        .text = "MXFP4",
                        .anchor = Anchor::right,
                        .dx = -10},
               {.color = {Role::text}, .in_legend = false});
    return figure;
}

std::string mean_title(const Means& means) {
    if (!means.known) return {};
    if (means.nvfp4.n.empty()) return "No mean of this tensor";
    const double nvfp4 = std::fabs(means.nvfp4.at(kGainCasts).gain_pct),
                 mxfp4 = std::fabs(means.mxfp4.at(kGainCasts).gain_pct);
    return nvfp4 > 3 * mxfp4 && nvfp4 > 0.2 ? "Errors average out, all but the saturation"
                                            : "Errors average out";
}

Figure mean_figure(const Means& means, const Params& params) {
    Figure figure{.id = "mean",
                  .title = mean_title(means),
                  .x = {.label = "n", .scale = Scale::log2, .range = Range{1, kMostCasts}},
                  .y = {.label = "SQNR dB, mean of n casts", .range = Range{10, 40}}};
    if (means.nvfp4.n.empty()) return figure;
    const bool stochastic = params.rounding == "stochastic";
    const auto line = [&](const std::string& name, const MeanLine& of, Style style) {
        std::vector<double> n, db;
        for (std::size_t i = 0; i < of.n.size(); ++i) {
            n.push_back(of.n[i]);
            db.push_back(of.numbers[i].sqnr_db);
            Range& range = *figure.y.range;
            if (std::isfinite(db.back()))
                range = {std::min(range.lo, db.back() - 1), std::max(range.hi, db.back() + 1)};
        }
        style.in_legend = false;
        style.end_label = fmt::format("{} {}", name, db_text(db.back()));
        figure.line(name, data(n), data(db), style);
    };
    const float opacity = stochastic ? 1.0F : 0.6F;
    line("NVFP4", means.nvfp4, {.color = {Role::block, Tone::line, opacity}, .width = 3});
    line("MXFP4", means.mxfp4, {.color = {Role::text, Tone::line, opacity}, .width = 2, .dash = Dash::dash});
    const double nearest = means.nearest_db[0];
    figure.line("nearest", data({1, kMostCasts}), data({nearest, nearest}),
                {.color = {Role::block},
                 .width = stochastic ? 1.0F : 2.0F,
                 .dash = Dash::dot,
                 .in_legend = false,
                 .end_label = "nearest " + db_text(nearest)});
    const auto gain = [&](const char* name, const MeanLine& of) {
        return fmt::format("{} {} %", name, pct_text(of.at(kGainCasts).gain_pct, 2));
    };
    figure.words = {figure.title + "."};
    for (const auto& [name, of] : {std::pair{"NVFP4", &means.nvfp4}, {"MXFP4", &means.mxfp4}})
        figure.words.push_back(fmt::format("{}: {} dB with 1 cast, {} with 16, {} with 256.", name,
                                           db_text(of->at(1).sqnr_db), db_text(of->at(16).sqnr_db),
                                           db_text(of->at(256).sqnr_db)));
    figure.words.push_back(fmt::format("NVFP4 to nearest: {} dB, whatever n.", db_text(nearest)));
    figure.words.push_back(
        fmt::format("Gain of the mean of {} casts: {}, {}, {}.", kGainCasts, gain("NVFP4", means.nvfp4),
                    gain("NVFP4 with RHT", means.nvfp4_rotated), gain("MXFP4", means.mxfp4)));
    const WeightGradient& dw = means.gradient;
    figure.words.push_back(
        fmt::format("dW of 4,096 tokens: {} dB plain, {} with both operands rotated, {} with one.",
                    db_text(dw.plain_db), db_text(dw.both_db), db_text(dw.one_db)));
    return figure;
}

}  // namespace fp8lab::four
