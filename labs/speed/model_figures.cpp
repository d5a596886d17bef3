#include "labs/speed/model_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "core/figure/axis.h"

namespace fp8lab::speed {
namespace {

Style stroke(Role role, float width, Dash dash = Dash::solid) {
    return {.color = {role}, .width = width, .dash = dash, .in_legend = false};
}
Style ink(Role role) { return {.color = {role, Tone::ink}, .in_legend = false}; }

// How the title of the sweep begins.
std::string wins_from(const Outcome& o) {
    if (o.params.casts == "none") return "Without casts";
    return o.params.casts == "x" ? "With the cast of x" : "With its casts";
}

std::string sweep_title(const Outcome& o) {
    if (o.sweep.points.empty()) return missing_words(o);
    const double from = o.sweep.crossover_m;
    if (std::isnan(from)) return wins_from(o) + " FP8 wins at no M";
    if (from == o.sweep.points.front().m) return wins_from(o) + " FP8 wins at every M";
    return fmt::format("{} FP8 wins from M = {:.0f} on", wins_from(o), from);
}

// One series of a sweep over M.
struct Line {
    std::vector<double> m, value, lo, hi;
};
Line line_of(const Sweep& sweep, Ratio SweepPoint::*ratio) {
    Line out;
    for (const SweepPoint& point : sweep.points) {
        out.m.push_back(point.m);
        out.value.push_back((point.*ratio).value);
        out.lo.push_back((point.*ratio).q1);
        out.hi.push_back((point.*ratio).q3);
    }
    return out;
}

void add_line(Figure& figure, const std::string& name, const Line& line, Style style) {
    figure.band(name + "##quartiles", data(line.m), data(line.lo), data(line.hi),
                {.color = {style.color.role, Tone::tint}, .in_legend = false});
    figure.line(name, data(line.m), data(line.value), std::move(style));
}

}  // namespace

std::string layer_text(const Layer& layer) { return fmt::format("{} \u2192 {}", layer.k, layer.n); }

std::string ms_text(double ms) {
    if (std::isnan(ms)) return "";
    return fmt::format("{:.{}f}", ms, ms < 0.09995 ? 4 : ms < 9.995 ? 3 : ms < 99.95 ? 2 : 1);
}

std::string factor_text(double factor) {
    return std::isnan(factor) ? "" : fmt::format("{:.{}f}\u00d7", factor, factor < 9.995 ? 2 : 1);
}

Figure sweep_figure(const Outcome& o) {
    Figure figure{.id = "sweep", .title = sweep_title(o)};
    figure.x = {.label = "M", .scale = Scale::log2, .range = Range{16, 32768}};
    figure.y = {.label = "times as fast as BF16", .range = Range{0, 2.2}};
    if (o.sweep.points.empty()) return figure;
    const Line alone = line_of(o.sweep, &SweepPoint::alone),
               casts = line_of(o.sweep, &SweepPoint::with_casts);
    figure.x.range = Range{alone.m.front(), std::max(alone.m.back(), 2 * alone.m.front())};
    double top = 2.2;
    for (const double value : alone.hi) top = std::max(top, std::isnan(value) ? 0 : 1.1 * value);
    figure.y.range = Range{0, top};
    figure.hline("as fast##1", 1, {.color = {Role::text}, .width = 1, .in_legend = false});
    figure.vline("M##chosen", o.params.m, {.color = {Role::axis}, .width = 1, .in_legend = false});
    add_line(figure, "GEMM alone", alone, {.color = {Role::e4m3}, .width = 2, .dash = Dash::dash});
    if (o.params.casts != "none")
        add_line(figure, o.params.casts == "x" ? "with cast of x" : "with casts", casts,
                 {.color = {Role::e4m3}, .width = 3});
    if (!o.over_sweep.points.empty()) {
        const Line over = line_of(o.over_sweep, &SweepPoint::with_casts);
        figure.line(o.over_gpu, data(over.m), data(over.value),
                    {.color = {Role::muted}, .width = 2, .dash = Dash::long_dash});
    }
    if (const double from = o.sweep.crossover_m; !std::isnan(from)) {
        const auto at = std::ranges::find(o.sweep.points, static_cast<int>(from), &SweepPoint::m);
        figure.scatter("crossover", data({from}), data({at->with_casts.value}),
                       {.color = {Role::e4m3, Tone::fill}, .marker_size = 6, .in_legend = false});
    }
    return figure;
}

Figure qkv_figure(const Outcome& o) {
    Figure figure{.id = "qkv"};
    figure.x = {.label = "M", .scale = Scale::log2};
    figure.y = {.label = "one product of 3d gains, %"};
    const auto at = std::ranges::find(o.qkv, o.params.m, &QkvPoint::m);
    if (o.qkv.empty())
        figure.title =
            fmt::format("Three products of d = {} against one of 3d were not recorded", o.params.k);
    else if (at == o.qkv.end())
        figure.title = fmt::format("One product of 3d against three: M = {} was not recorded", o.params.m);
    else
        figure.title = fmt::format("One product of 3d beats three by {} % in FP8, {} % in BF16",
                                   screen_number(at->fp8_gain_pct, 2), screen_number(at->bf16_gain_pct, 2));
    std::vector<double> m, bf16, fp8;
    double top = 10, bottom = 0;
    for (const QkvPoint& point : o.qkv) {
        m.push_back(point.m), bf16.push_back(point.bf16_gain_pct), fp8.push_back(point.fp8_gain_pct);
        for (const double gain : {point.bf16_gain_pct, point.fp8_gain_pct})
            if (!std::isnan(gain)) top = std::max(top, 1.1 * gain), bottom = std::min(bottom, 1.1 * gain);
    }
    figure.x.range = m.empty() ? Range{128, 8192} : Range{m.front(), std::max(m.back(), 2 * m.front())};
    figure.y.range = Range{bottom, top};
    figure.hline("##0", 0, {.color = {Role::text}, .width = 1, .in_legend = false});
    figure.vline("M##chosen", o.params.m, {.color = {Role::axis}, .width = 1, .in_legend = false});
    figure.line("FP8", data(m), data(fp8), {.color = {Role::e4m3}, .width = 3, .marker = Marker::diamond});
    figure.line("BF16", data(m), data(bf16),
                {.color = {Role::bf16}, .width = 2, .dash = Dash::dash, .marker = Marker::disc});
    return figure;
}

std::string cell_text(const AlignCell& cell) {
    if (!cell.fp8) return "not recorded";
    return cell.refused() ? fmt::format("refused ({})", cell.fp8->status)
                          : ms_text(cell.fp8->median_ms) + " ms";
}

Figure align_figure(const Outcome& o) {
    Figure figure{.id = "align"};
    figure.title = refusal_words(o);
    if (figure.title.empty()) {
        const auto count = std::ranges::count_if(o.align, &AlignCell::refused);
        figure.title = o.align.empty()
                           ? "Sizes that are no multiple of 16 were not recorded"
                           : fmt::format("One of M, N, K is {}: cuBLASLt refuses {} of {} FP8 products",
                                         kAlignEdge + 1, count, o.align.size());
    }
    figure.x.visible = figure.y.visible = false;
    figure.x.range = figure.y.range = Range{0, 4};
    HeatmapSeries map{.rows = 4, .cols = 4, .lo = 0, .hi = 1};
    std::vector<double> values(16, kNan);
    map.labels.assign(16, "");
    for (std::size_t i = 0; i < o.align.size(); ++i) {
        const std::size_t row = i / 3 + 1, column = i % 3 + 1;
        map.labels[column] = fmt::format("{} + 1", o.align[i].dimension);
        map.labels[4 * row] = o.align[i].product;
        map.labels[4 * row + column] = cell_text(o.align[i]);
        if (o.align[i].fp8) values[4 * row + column] = o.align[i].refused() ? 0 : 0.6;
        figure.words.push_back(fmt::format("{} with {} + 1: {}.", o.align[i].product, o.align[i].dimension,
                                           cell_text(o.align[i])));
    }
    map.values = data(std::move(values));
    figure.heatmap("refusals", std::move(map), {.color = {Role::e4m3, Tone::fill}, .in_legend = false});
    if (figure.words.empty()) figure.words = {figure.title + "."};
    return figure;
}

Figure formats_figure(const Outcome& o) {
    Figure figure{.id = "formats"};
    const auto best = std::ranges::max_element(o.formats, {}, [](const FormatRow& row) {
        return row.time && row.time->ran() ? row.time->tflops() : 0.0;
    });
    const FormatRow* fp16 = nullptr;
    for (const FormatRow& row : o.formats)
        if (row.kind == "fp16" && row.time && row.time->ran()) fp16 = &row;
    if (best == o.formats.end() || !best->time || !best->time->ran())
        figure.title = "Products in other formats were not recorded";
    else if (!fp16)
        figure.title = fmt::format("At {}\u00b3 {} is the fastest", o.params.n3, best->label);
    else
        figure.title = fmt::format("At {}\u00b3 {} is {} as fast as FP16", o.params.n3, best->label,
                                   factor_text(fp16->time->median_ms / best->time->median_ms));
    figure.x = {.label = "TFLOP/s"};
    figure.y.visible = false;
    const auto count = static_cast<double>(o.formats.size());
    figure.y.range = Range{0, count};
    double longest = 1;
    for (const FormatRow& row : o.formats)
        if (row.time) longest = std::max(longest, row.time->tflops());
    figure.x.range = Range{0, 1.35 * longest};
    for (std::size_t i = 0; i < o.formats.size(); ++i) {
        const FormatRow& row = o.formats[i];
        const double bottom = count - 1 - static_cast<double>(i) + 0.2, top = bottom + 0.6;
        const bool ran = row.time && row.time->ran();
        const double length = ran ? row.time->tflops() : 0;
        if (ran)
            figure.band(row.label, data({0, length}), data({bottom, bottom}), data({top, top}),
                        {.color = {row.kind.starts_with("fp8") ? Role::e4m3 : Role::bf16, Tone::fill, 0.7F},
                         .in_legend = false});
        const std::string words = ran         ? fmt::format("{} {:.0f}", row.label, length)
                                  : !row.time ? row.label + ", not recorded"
                                              : fmt::format("{}, refused ({})", row.label, row.time->status);
        figure.add("", TextMark{.x = length, .y = (bottom + top) / 2, .text = words, .dx = 6},
                   ink(ran ? Role::text : Role::muted));
        figure.words.push_back(words + (ran ? " TFLOP/s." : "."));
    }
    return figure;
}

Figure lower_figure(const Outcome& o) {
    if (o.params.view == "qkv") return qkv_figure(o);
    if (o.params.view == "align") return align_figure(o);
    return o.params.view == "formats" ? formats_figure(o) : sweep_figure(o);
}

// ---- one step ----

std::string step_name(const RecordedStep& step) {
    return fmt::format("{}, batch {}", fmt::join(step.layers, "-"), step.batch);
}

namespace {

std::string step_title(const Outcome& o) {
    const StepOutcome& s = o.step;
    if (!s.found) return "No step was recorded for this layer";
    if (!s.applies) return "Parts of this step run side by side: Amdahl does not apply";
    const std::string measured = fmt::format("One step: {} measured", factor_text(s.speedup));
    return o.params.show_amdahl ? fmt::format("{}, Amdahl says {}", measured, factor_text(s.amdahl))
                                : measured;
}

// GEMM in the arm's colour, its casts lighter; what no format changes is grey.
void add_bar(Figure& figure, const StepBar& bar, Role role, double bottom, double height, bool last) {
    struct Part {
        const char* name;
        double ms;
        Color color;
    };
    const std::array parts = {Part{"GEMM", bar.gemm, {role, Tone::fill}},
                              Part{"casts", bar.casts, {role, Tone::fill, 0.5F}},
                              Part{"optimiser", bar.optimizer, {Role::muted, Tone::fill, 0.7F}},
                              Part{"rest", bar.rest, {Role::muted, Tone::fill, 0.3F}}};
    double from = 0;
    for (const Part& part : parts) {
        figure.band(fmt::format("{}##{}", part.name, bar.recipe), data({from, from + part.ms}),
                    data({bottom, bottom}), data({bottom + height, bottom + height}),
                    {.color = part.color, .in_legend = last});
        from += part.ms;
    }
}

}  // namespace

Figure step_figure(const Outcome& o, double bar_height) {
    Figure figure{.id = "step", .title = step_title(o)};
    figure.x = {.label = "ms", .range = Range{0, 1}};
    figure.y = {.range = Range{0, 2}, .visible = false};
    const StepOutcome& s = o.step;
    if (!s.found) return figure;
    const double longest = std::max({s.bf16.sum(), s.fp8.sum(), s.bf16.median_ms, s.fp8.median_ms});
    figure.x.range = Range{0, 1.02 * longest};
    const double low = 0.5 - bar_height / 2 - 0.1, high = 1 + low;
    add_bar(figure, s.bf16, Role::bf16, high, bar_height, false);
    add_bar(figure, s.fp8, Role::e4m3, low, bar_height, true);
    const auto name = [&](const StepBar& bar, const char* words, Role role, double bottom) {
        const double y = bottom + bar_height;
        figure.add(
            "",
            TextMark{
                .x = 0, .y = y, .text = fmt::format("{}: GEMM {} ms", words, ms_text(bar.gemm)), .dy = -11},
            ink(role));
        figure.add("",
                   TextMark{.x = 1.02 * longest,
                            .y = y,
                            .text = ms_text(bar.median_ms) + " ms",
                            .anchor = Anchor::right,
                            .dy = -11},
                   ink(role));
    };
    const std::string fp8 = "FP8, " + s.fp8.recipe;
    name(s.bf16, "BF16", Role::bf16, high);
    name(s.fp8, fp8.c_str(), Role::e4m3, low);
    if (s.applies && o.params.show_amdahl) {
        const double at = s.bf16.median_ms / s.amdahl;
        figure.line("Amdahl##tick", data({at, at}), data({low - 0.08, low + bar_height + 0.08}),
                    stroke(Role::text, 2));
        figure.add("",
                   TextMark{.x = at,
                            .y = low + bar_height / 2,
                            .text = fmt::format("Amdahl {} ms", ms_text(at)),
                            .dx = 8},
                   ink(Role::text));
    }
    return figure;
}

std::vector<std::string> amdahl_lines(const Outcome& o) {
    const StepOutcome& s = o.step;
    if (!s.found || !s.applies) return {};
    std::vector<std::string> out = {
        fmt::format("GEMM share f = {:.1f} %, GEMM ratio r = {:.2f}", 100 * s.share, s.ratio)};
    if (!o.params.show_amdahl) return out;
    out.push_back(fmt::format("1 / (1 \u2212 f + f / r) = {:.2f}", s.amdahl));
    out.push_back(
        fmt::format("The other {:.1f} % cap any speed-up at {}: casts, optimiser and the rest "
                    "do not shrink in FP8.",
                    100 * (1 - s.share), factor_text(s.ceiling)));
    return out;
}

}  // namespace fp8lab::speed
