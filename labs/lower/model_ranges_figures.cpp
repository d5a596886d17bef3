// The figures of the experiments ranges, cascade and kv.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "labs/lower/model.h"
#include "labs/lower/model_ranges.h"

namespace fp8lab::lower {
namespace {

Dash dash_of(const LowFormat& format, bool second, Dash other) {
    if (second) return other;
    return format.id == "mxfp4" ? Dash::long_dash : Dash::solid;
}

// Those of one colour differ by their marks too.
Marker line_marker(const LowFormat& format) {
    return format.id == "nvfp4"        ? Marker::disc
           : format.id == "mxfp6-e2m3" ? Marker::square
           : format.id == "mxfp4"      ? Marker::diamond
                                       : Marker::none;
}

const SweepLine* find_line(const std::vector<SweepLine>& lines, std::string_view format, bool second) {
    const auto hit = std::ranges::find_if(
        lines, [&](const SweepLine& l) { return l.format->id == format && l.second == second; });
    return hit == lines.end() ? nullptr : &*hit;
}

// The value of a sweep at the point that is nearest.
double at_point(const std::vector<double>& xs, const std::vector<double>& ys, double x) {
    const auto near =
        std::ranges::min_element(xs, {}, [&](double v) { return std::fabs(std::log2(v) - std::log2(x)); });
    return ys.at(static_cast<std::size_t>(near - xs.begin()));
}

void add_lines(Figure& figure, const std::vector<double>& xs, const std::vector<SweepLine>& lines,
               Dash second) {
    for (const SweepLine& line : lines)
        figure.line(
            fmt::format("{}{}", line.format->label, line.second ? "##second" : ""), data(xs),
            data(line.values),
            {.color = {line.format->role, line.second ? Tone::line : Tone::line, line.second ? 0.7F : 1},
             .width = line.second ? 1.5F : 2,
             .dash = dash_of(*line.format, line.second, second),
             .marker = line.second ? Marker::none : line_marker(*line.format),
             .in_legend = !line.second});
}

// The axis runs from below the lowest value up to 100 %.
AxisSpec value_axis(bool classifies, const std::vector<SweepLine>& lines, std::string_view second) {
    if (!classifies)
        return {.label = fmt::format("squared error over FP32’s squares; {}", second), .scale = Scale::log10};
    double least = 100;
    for (const SweepLine& line : lines)
        for (const double value : line.values) least = std::min(least, value);
    return {.label = fmt::format("accuracy %; {}", second),
            .range = Range{std::max(0.0, 10 * std::floor(least / 10) - 1), 101}};
}

std::string ratio_text(double ratio) { return screen_number(ratio, ratio < 10 ? 2 : 4); }

}  // namespace

std::string outliers_title(const Ranges& ranges, double ratio, double sqnr_db) {
    if (!ranges.known()) return {};
    if (ranges.outliers.empty()) return "Outlier channels need relu between two layers";
    if (!ranges.classifies) return "Four channels enter layer 2 up to 1 024 times larger";
    const SweepLine* worst = nullptr;
    for (const SweepLine& line : ranges.outliers)
        if (!line.second && (!worst || at_point(ranges.ratios, line.values, ratio) <
                                           at_point(ranges.ratios, worst->values, ratio)))
            worst = &line;
    if (ratio == 1)
        return fmt::format("Without outliers {} answers {:.0f} %, the fewest of five formats",
                           worst->format->label, at_point(ranges.ratios, worst->values, 1));
    const auto acc = [&](const SweepLine& line) {
        return fmt::format("{:.0f} %", at_point(ranges.ratios, line.values, ratio));
    };
    return fmt::format("Four channels ×{}: {} answers {}, E4M3 {}. The input of layer 2 still has {} dB",
                       ratio_text(ratio), worst->format->label, acc(*worst),
                       acc(*find_line(ranges.outliers, "e4m3", false)),
                       std::isfinite(sqnr_db) ? fmt::format("{:.1f}", sqnr_db) : "n/a");
}

Figure outliers_figure(const Ranges& ranges, double ratio, double sqnr_db) {
    Figure figure{.id = "outliers",
                  .title = outliers_title(ranges, ratio, sqnr_db),
                  .x = {.label = "outlier ratio", .scale = Scale::log2, .range = Range{1, 1024}},
                  .y = value_axis(ranges.classifies, ranges.outliers,
                                  "dotted: with smoothing " + ranges.spec.dotted())};
    add_lines(figure, ranges.ratios, ranges.outliers, Dash::dot);
    figure.vline("", ratio, {.color = {Role::axis}, .width = 1, .in_legend = false});
    return figure;
}

Figure contrast_figure(const Ranges& ranges, double contrast) {
    Figure figure{.id = "contrast",
                  .x = {.label = "contrast", .scale = Scale::log2, .range = Range{0.125, 8}},
                  .y = value_axis(ranges.classifies, ranges.contrast, "dashed: calibrated")};
    const SweepLine *fixed = find_line(ranges.contrast, "e4m3", true),
                    *dynamic = find_line(ranges.contrast, "e4m3", false);
    if (fixed && dynamic && ranges.classifies)
        figure.title = fmt::format(
            "Inputs ×{}: E4M3 answers {:.1f} % with calibrated scales, {:.1f} % with dynamic ones",
            ratio_text(contrast), at_point(ranges.contrasts, fixed->values, contrast),
            at_point(ranges.contrasts, dynamic->values, contrast));
    else
        figure.title = ranges.known() ? "Inputs outside the calibrated range saturate" : "";
    add_lines(figure, ranges.contrasts, ranges.contrast, Dash::dash);
    figure.vline("", contrast, {.color = {Role::axis}, .width = 1, .in_legend = false});
    figure.vline("calibrated", 1, {.color = {Role::axis}, .width = 1, .dash = Dash::dash});
    return figure;
}

Figure saturated_figure(const Ranges& ranges) {
    Figure figure{.id = "saturated",
                  .title = ranges.known() ? "E4M3, calibrated: % of the inputs that saturate" : "",
                  .x = {.label = "contrast", .scale = Scale::log2, .range = Range{0.125, 8}},
                  .y = {.label = "saturated %", .range = Range{0, 100}}};
    const std::vector<double> zeros(ranges.contrasts.size());
    figure.band("saturated", data(ranges.contrasts), data(zeros), data(ranges.saturated_pct),
                {.color = {Role::sat, Tone::fill}, .in_legend = false});
    return figure;
}

std::string cascade_title(const CascadeSweep& sweep, double tau) {
    if (!sweep.setup) return {};  // before the first result
    if (sweep.at.empty()) return "A cascade needs classes: this network has none";
    const Cascade now = sweep.with(tau);
    return fmt::format("Repeating {:.1f} % brings {:.2f} % to {:.2f} % at {:.3f} of the work of {}",
                       now.repeated_pct, now.accuracy_low_pct, now.accuracy_pct, now.cost,
                       find_low_format(sweep.spec.high, "high").label);
}

namespace {

AxisSpec tau_axis(bool visible) {
    return {.label = "tau, the margin p1 − p2 below which a row is repeated",
            .range = Range{0, 1},
            .visible = visible};
}

void add_tau(Figure& figure, double tau) {
    figure.vline("", tau, {.color = {Role::text}, .width = 2, .in_legend = false});
}

}  // namespace

Figure cascade_figure(const CascadeSweep& sweep, double tau) {
    Figure figure{.id = "cascade",
                  .title = cascade_title(sweep, tau),
                  .x = tau_axis(false),
                  .y = {.label = "accuracy %"}};
    if (sweep.at.empty()) return figure;
    std::vector<double> ys;
    for (const Cascade& at : sweep.at) ys.push_back(at.accuracy_pct);
    const Cascade& one = sweep.at.front();
    const auto [lo, hi] = std::ranges::minmax({*std::ranges::min_element(ys), *std::ranges::max_element(ys),
                                               one.accuracy_low_pct, one.accuracy_high_pct});
    figure.y.range = Range{lo - 0.4, hi + 0.4};
    const auto level = [&](const std::string& format, double value) {
        const LowFormat& f = find_low_format(format, "format");
        figure.line(fmt::format("{} alone", f.label), data({0, 1}), data({value, value}),
                    {.color = {f.role}, .width = 1.5F, .dash = Dash::dash});
    };
    level(sweep.spec.low, one.accuracy_low_pct);
    level(sweep.spec.high, one.accuracy_high_pct);
    figure.line("cascade", data(sweep.taus), data(std::move(ys)),
                {.color = {Role::text}, .width = 3, .step = true});
    add_tau(figure, tau);
    return figure;
}

Figure cost_figure(const CascadeSweep& sweep, double tau) {
    Figure figure{.id = "cost",
                  .x = tau_axis(false),
                  .y = {.label = "mean cost, the high format alone = 1", .range = Range{0, 1.5}}};
    if (sweep.at.empty()) return figure;
    std::vector<double> ys;
    for (const Cascade& at : sweep.at) ys.push_back(at.cost);
    figure.line("high alone", data({0, 1}), data({1, 1}),
                {.color = {Role::axis}, .width = 1, .dash = Dash::dash, .in_legend = false});
    figure.line("cost", data(sweep.taus), data(std::move(ys)),
                {.color = {Role::text}, .width = 2, .step = true, .in_legend = false});
    add_tau(figure, tau);
    return figure;
}

Figure margins_figure(const CascadeSweep& sweep, double tau) {
    Figure figure{
        .id = "margins",
        .x = tau_axis(true),
        .y = {.label = "answers in the low format", .scale = Scale::log10, .range = Range{0.7, 600}}};
    if (sweep.at.empty()) return figure;
    constexpr std::size_t kBins = 20;
    std::vector<double> edges, right(kBins), wrong(kBins);
    for (std::size_t i = 0; i <= kBins; ++i) edges.push_back(static_cast<double>(i) / kBins);
    const std::vector<int> answers = answers_of(sweep.run.low);
    for (std::size_t r = 0; r < answers.size(); ++r) {
        const auto bin = std::min(static_cast<std::size_t>(sweep.run.margins[r] * kBins), kBins - 1);
        (answers[r] == sweep.setup->reference.right[r] ? right : wrong)[bin] += 1;
    }
    figure.bars("right", data(edges), data(std::move(right)), {.color = {Role::muted, Tone::fill, 0.6F}});
    figure.bars("wrong", data(std::move(edges)), data(std::move(wrong)), {.color = {Role::sat}});
    for (Series& series : figure.series)
        if (auto* bars = std::get_if<BarSeries>(&series.shape)) bars->base = 0.7;
    add_tau(figure, tau);
    return figure;
}

std::string kv_title(const KvSpec& spec) {
    const auto tokens = [&](const char* cache) {
        return group_thousands(static_cast<std::int64_t>(kv_tokens(spec.bytes(), kv_bytes(spec, cache))));
    };
    return fmt::format("{} GB hold {} tokens in BF16, {} in FP8, {} in NVFP4",
                       screen_number(spec.gigabytes, 3), tokens("bf16"), tokens("fp8"), tokens("nvfp4"));
}

Figure kv_memory_figure(const KvSpec& spec) {
    constexpr double kGB = 1e9, kFewest = 4096, kMost = 4'194'304;
    Figure figure{.id = "kv_memory",
                  .title = kv_title(spec),
                  .x = {.label = "context, tokens", .scale = Scale::log2, .range = Range{kFewest, kMost}},
                  .y = {.label = "GB", .scale = Scale::log10}};
    double lowest = 1e9;
    for (const auto& [cache, label, role] :
         {std::tuple{"bf16", "BF16", Role::bf16}, std::tuple{"fp8", "FP8", Role::e4m3},
          std::tuple{"nvfp4", "NVFP4", Role::block}}) {
        const double bytes = kv_bytes(spec, cache), tokens = kv_tokens(spec.bytes(), bytes);
        lowest = std::min(lowest, bytes * kFewest / kGB);
        figure.line(label, data({kFewest, kMost}), data({bytes * kFewest / kGB, bytes * kMost / kGB}),
                    {.color = {role},
                     .width = spec.cache == cache ? 3.0F : 2.0F,
                     .dash = role == Role::bf16 ? Dash::long_dash : Dash::solid});
        figure.scatter(fmt::format("##{}", cache), data({tokens}), data({spec.gigabytes}),
                       {.color = {role}, .marker = Marker::disc, .marker_size = 5, .in_legend = false});
    }
    const double fp8 = kv_bytes(spec, "fp8"), fp4 = kv_bytes(spec, "nvfp4"), budget = spec.bytes();
    if (spec.cache == "pressure")
        figure.line("pressure", data({kFewest, budget / fp8, budget / fp4, kMost}),
                    data({fp8 * kFewest / kGB, spec.gigabytes, spec.gigabytes, fp4 * kMost / kGB}),
                    {.color = {Role::text}, .width = 3, .dash = Dash::dot});
    figure.hline(fmt::format("budget {} GB", screen_number(spec.gigabytes, 3)), spec.gigabytes);
    figure.y.range = Range{lowest, kv_bytes(spec, "bf16") * kMost / kGB};
    return figure;
}

Figure kv_error_figure(const std::optional<KvErrors>& known, const KvCase& kv) {
    Figure figure{.id = "kv_error",
                  .x = {.label = fmt::format("K alone, V alone, both; K’s outliers ×{}, queries ×{}",
                                             kv.outlier, kv.sharpness),
                        .range = Range{-0.3, 12.3},
                        .visible = false},
                  .y = {.label = "relative error %", .range = Range{0, 10}}};
    if (!known) return figure;
    const KvErrors& errors = *known;
    figure.title = fmt::format("The output of attention: {:.0f} % off in E4M3, {:.0f} % in NVFP4",
                               errors[0].both_pct, errors[1].both_pct);
    double most = 1;
    for (std::size_t f = 0; f < errors.size(); ++f) {
        const LowFormat& format = find_low_format(kKvFormats.at(f), "format");
        const std::array<double, 3> values = {errors.at(f).k_pct, errors.at(f).v_pct, errors.at(f).both_pct};
        for (std::size_t i = 0; i < values.size(); ++i) {
            const double x = 4.2 * static_cast<double>(f) + static_cast<double>(i) * 1.2;
            most = std::max(most, values.at(i));
            figure.bars(fmt::format("##{}.{}", format.id, i), data({x, x + 1}), data({values.at(i)}),
                        {.color = {format.role, Tone::fill, i == 2 ? 1.0F : 0.55F}, .in_legend = false});
            figure.add("",
                       TextMark{.x = x + 0.5,
                                .y = values.at(i),
                                .text = fmt::format("{:.0f}", values.at(i)),
                                .anchor = Anchor::center,
                                .strong = false,
                                .dy = -12},
                       {.color = {Role::text}, .in_legend = false});
        }
        figure.add("",
                   TextMark{.x = 4.2 * static_cast<double>(f) + 1.7,
                            .y = 0,
                            .text = std::string(format.label),
                            .anchor = Anchor::center,
                            .dy = 14},
                   {.color = {format.role, Tone::ink}, .in_legend = false});
    }
    figure.y.range = Range{0, 1.2 * most};
    return figure;
}

}  // namespace fp8lab::lower
