// The part "speed" of L17: what is recorded, and its figure.
#include "labs/serve/parts/model_speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/base/units.h"

namespace fp8lab::serve {
namespace {

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

std::string times(double factor) { return screen_number(factor, factor < 9.95 ? 2 : 3) + " times"; }

// The largest batch that was measured with both.
int last_batch(const Speeds& s) {
    int out = 0;
    for (const RecordedInfer* run : s.runs)
        if (s.gain(s.spec.weights, run->of.batch) > 0) out = run->of.batch;
    return out;
}

std::vector<std::string> words_of(const Speeds& s, const std::string& title) {
    std::vector<std::string> out = {title + "."};
    for (const ServedWeights weights : kSpeedWeights) {
        std::string points;
        for (const RecordedInfer* run : s.runs)
            if (run->of.formats.weights == weights)
                points += fmt::format("{}{}: {:.0f}", points.empty() ? "" : ", ", run->of.batch,
                                      run->tokens_per_s());
        if (!points.empty())
            out.push_back(fmt::format("{}, tokens/s by batch: {}.", info_of(weights).label, points));
    }
    return out;
}

}  // namespace

const RecordedInfer* Speeds::at(ServedWeights weights, int batch) const {
    const auto hit = std::ranges::find_if(runs, [&](const RecordedInfer* run) {
        return run->of.formats.weights == weights && run->of.batch == batch;
    });
    return hit == runs.end() ? nullptr : *hit;
}

const RecordedInfer* Speeds::last(ServedWeights weights) const {
    const RecordedInfer* out = nullptr;
    for (const RecordedInfer* run : runs)
        if (run->of.formats.weights == weights) out = run;
    return out;
}

double Speeds::gain(ServedWeights weights, int batch) const {
    const RecordedInfer *own = at(weights, batch), *wide = at(ServedWeights::bf16, batch);
    return own && wide ? wide->median_ms / own->median_ms : kNotMeasured;
}

Speeds speeds_of(const SpeedSpec& spec) {
    Speeds out{.spec = spec, .of = shipped()};
    out.recording = out.of->find(spec.card);
    if (!out.recording) return out;
    for (const RecordedInfer& run : out.recording->infer)
        if (run.of.formats.cache == spec.cache && run.of.tokens == 1) out.runs.push_back(&run);
    return out;
}

double cache_share_pct(const RecordedInfer& run) {
    return 100 * cache_bytes(run.of) / (weight_bytes(run.of) + cache_bytes(run.of));
}

Style speed_style(ServedWeights weights) {
    if (weights == ServedWeights::bf16)
        return {.color = {Role::bf16}, .dash = Dash::dash, .marker = Marker::disc};
    return {.color = {Role::e4m3},
            .dash = weights == ServedWeights::weight_only ? Dash::solid : Dash::dot,
            .marker = weights == ServedWeights::weight_only ? Marker::diamond : Marker::square};
}

std::string speed_title(const Speeds& s) {
    if (!s.recording) return "No GPU was recorded here";
    const std::string gpu = short_gpu_name(s.recording->gpu);
    if (s.runs.empty()) return fmt::format("The recording of the {} has no times of serving", gpu);
    const int first = s.runs.front()->of.batch, last = last_batch(s);
    if (s.spec.weights == ServedWeights::bf16) {
        const RecordedInfer *one = s.at(ServedWeights::bf16, first), *many = s.at(ServedWeights::bf16, last);
        if (!one || !many || first == last) return fmt::format("Tokens per second on the {}", gpu);
        return fmt::format("{} times the sequences, {} the tokens: weights are read once for all of them",
                           screen_number(static_cast<double>(last) / first),
                           times(many->tokens_per_s() / one->tokens_per_s()));
    }
    const double at_first = s.gain(s.spec.weights, first), at_last = s.gain(s.spec.weights, last);
    if (!(at_first > 0) || !(at_last > 0)) return fmt::format("Tokens per second on the {}", gpu);
    return fmt::format("E4M3 weights: {} the tokens at batch {}, {} at {} ({:.0f} % of the bytes are cache)",
                       times(at_first), first, times(at_last), last,
                       cache_share_pct(*s.at(s.spec.weights, last)));
}

Figure speed_figure(const Speeds& s) {
    Figure figure{
        .id = "tokens_per_s",
        .title = speed_title(s),
        .x = {.label = "sequences (batch)", .scale = Scale::log2, .range = Range{0.8, 1.25 * kMostSequences}},
        .y = {.label = "tokens/s", .scale = Scale::log10}};
    if (s.runs.empty()) return figure;
    figure.words = words_of(s, figure.title);
    double low = s.runs.front()->tokens_per_s(), high = low;
    const auto line = [&](const std::string& name, ServedWeights weights, Style style, const auto& value) {
        std::vector<double> x, y;
        for (const RecordedInfer* run : s.runs) {
            if (run->of.formats.weights != weights) continue;
            x.push_back(run->of.batch), y.push_back(value(*run));
            low = std::min(low, y.back()), high = std::max(high, y.back());
        }
        if (!x.empty()) figure.line(name, data(std::move(x)), data(std::move(y)), std::move(style));
    };
    line("reading alone", s.spec.weights, {.color = {Role::axis}, .width = 1.5F, .dash = Dash::long_dash},
         [](const RecordedInfer& run) { return run.tokens_per_s() * run.median_ms / run.floor_ms(); });
    for (const ServedWeights weights : kSpeedWeights) {
        Style style = speed_style(weights);
        style.width = weights == s.spec.weights ? 3.0F : 2.0F;
        line(std::string(info_of(weights).label), weights, std::move(style),
             [](const RecordedInfer& run) { return run.tokens_per_s(); });
        // The others are named where they end, at the right.
        const RecordedInfer* const last = s.last(weights);
        if (last && last->of.batch < kMostSequences)
            figure.add("",
                       TextMark{.x = static_cast<double>(last->of.batch),
                                .y = last->tokens_per_s(),
                                .text = fmt::format("solid: {}, up to batch {}", info_of(weights).label,
                                                    last->of.batch),
                                .dx = 14,
                                .dy = 46},
                       {.color = {Role::e4m3, Tone::ink}, .in_legend = false});
    }
    figure.y.range = Range{low * 0.8, high * 1.25};
    if (const RecordedInfer* chosen = s.chosen()) {
        const double x = s.spec.batch;
        figure.vline("", x, kHairline);
        Style style = speed_style(s.spec.weights);
        style.marker_size = 7, style.in_legend = false;
        figure.scatter("chosen", data({x}), data({chosen->tokens_per_s()}), std::move(style));
    }
    return figure;
}

}  // namespace fp8lab::serve
