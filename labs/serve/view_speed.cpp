// The part "speed" of L17: tokens per second over the batch, and a row for each format of the weights at the chosen batch.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/serve/view_parts.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::serve {
namespace {

using ui::Context;

void set_to(ServeLab& lab, const char* field, const std::string& value) {
    set_field(lab.fields(), fmt::format("{}={}", field, value));
}

std::string tokens_text(double tokens) { return fmt::format("{:.0f}", tokens); }
std::string gain_text(double gain) { return gain > 0 ? fmt::format("{:.2f}\u00d7", gain) : "\u2013"; }

}  // namespace

void SpeedStage::draw(Context& c, ServeLab& lab, Rect area) {
    const Speeds speeds = speeds_of(lab->params.speed_spec());
    const float split =
        area.y1 - c.px(28 + 30 * static_cast<float>(kSpeedWeights.size()) + (speeds.runs.empty() ? 0 : 26));
    draw_curves(c, lab, speeds, {area.x0, area.y0, area.x1, split - c.px(14)});
    draw_table(c, lab, speeds, {area.x0, split, area.x1, area.y1});
}

// A press or an arrow key sets the batch.
void SpeedStage::draw_curves(Context& c, ServeLab& lab, const Speeds& speeds, Rect area) {
    const Figure figure = speed_figure(speeds);
    ui::region(c, "tokens_per_s", area);
    const float heading = ui::heading(c, figure.title, area);
    if (speeds.runs.empty()) return;
    constexpr float kNames = 176;
    const ui::PlotResult plot = ui::plot(c, "serve.tokens_per_s", bare_of_words(figure), curves_,
                                         {area.x0, heading + c.px(6), area.x1 - c.px(kNames), area.y1},
                                         {.interactive = false, .y_tick_width = 52, .title_height = 0});
    const ui::Press press = ui::press(c, "serve.batch", plot.area, 2);
    const auto choose = [&](double exponent) {
        const double most = std::log2(static_cast<double>(kMostSequences));
        set_to(lab, "batch", fmt::format("{:.0f}", std::exp2(std::clamp(std::round(exponent), 0.0, most))));
    };
    if (press.clicked || press.held)
        if (const auto mouse = ImGui::GetIO().MousePos; plot.area.contains({mouse.x, mouse.y}))
            choose(std::log2(plot.x_at(mouse.x)));
    if (const int arrows = press.focused ? ui::arrow_step() : 0; arrows != 0)
        choose(std::log2(static_cast<double>(speeds.spec.batch)) + arrows);
    std::vector<ui::EndWords> ends;
    const auto end = [&](double tokens, std::string_view name, Color ink) {
        ends.push_back({plot.to_px(kMostSequences, tokens).y, {}, std::string(name), ink});
    };
    for (const ServedWeights weights : kSpeedWeights)
        if (const RecordedInfer* last = speeds.at(weights, kMostSequences))
            end(last->tokens_per_s(), info_of(weights).label, {speed_style(weights).color.role, Tone::ink});
    if (const RecordedInfer* last = speeds.last(speeds.spec.weights);
        last && last->of.batch == kMostSequences)
        end(last->tokens_per_s() * last->median_ms / last->floor_ms(), "reading alone", {Role::muted});
    ui::end_words(c, std::move(ends), plot.area.x1 + c.px(10),
                  {area.x0, plot.area.y0, area.x1, plot.area.y1});
}

// A press chooses the format.
void SpeedStage::draw_table(Context& c, ServeLab& lab, const Speeds& speeds, Rect area) {
    if (speeds.runs.empty()) return;
    ui::region(c, "served", area);
    const auto x = [&](float share) { return area.x0 + share * area.width(); };
    constexpr std::array kEdges = {0.42F, 0.57F, 0.70F, 0.86F, 1.0F};
    const std::array<const char*, kEdges.size()> heads = {"tokens/s", "\u00b5s a layer", "BF16 = 1",
                                                          "reading alone", "cache"};
    const float head = area.y0 + c.px(12);
    ui::text_mid(c, {area.x0, head}, fmt::format("weights, batch {}", speeds.spec.batch), {Role::muted},
                 kSans13);
    for (std::size_t i = 0; i < heads.size(); ++i)
        ui::text_mid(c, {x(kEdges[i]), head}, heads[i], {Role::muted}, kSans13, Anchor::right);
    float y = area.y0 + c.px(28);
    const float pitch = c.px(30);
    for (const ServedWeights weights : kSpeedWeights) {
        const Rect line{area.x0, y, area.x1, y + pitch};
        const std::string id(info_of(weights).name);
        if (ui::press(c, "serve.weights." + id, line).clicked) set_to(lab, "weights", id);
        ui::hline(c, area.x0, area.x1, y, {Role::line});
        const bool strong = weights == speeds.spec.weights;
        const float middle = y + pitch / 2;
        ui::text_mid(c, {area.x0, middle}, std::string(info_of(weights).label), {Role::text},
                     strong ? kBold13 : kSans13);
        const RecordedInfer* const run = speeds.at(weights, speeds.spec.batch);
        const auto put = [&](std::size_t column, const std::string& words) {
            ui::text_mid(c, {x(kEdges[column]), middle}, words, {run ? Role::text : Role::muted},
                         strong ? kMonoBold13 : kMono13, Anchor::right);
        };
        if (!run) {
            put(kEdges.size() - 1, "not measured");
        } else {
            put(0, tokens_text(run->tokens_per_s()));
            put(1, screen_number(1e3 * run->median_ms / run->of.layers, 3));
            put(2, gain_text(speeds.gain(weights, speeds.spec.batch)));
            put(3, fmt::format("{:.2f}\u00d7", run->median_ms / run->floor_ms()));
            put(4, fmt::format("{:.0f} %", cache_share_pct(*run)));
        }
        y += pitch;
    }
    ui::hline(c, area.x0, area.x1, y, {Role::line});
    ui::note(c,
             "Reading alone: the time over that of reading weights and cache at the rate of a copy. Cache: "
             "its share of "
             "these bytes.",
             {area.x0, y + c.px(5), area.x1, area.y1 + c.px(8)});
}

void SpeedStage::draw_rows(Context& c, ServeLab& lab) {
    const Speeds speeds = speeds_of(lab->params.speed_spec());
    const RecordedInfer* const run = speeds.chosen();
    if (run) {
        ui::headline(c, "serve.result",
                     {tokens_text(run->tokens_per_s()),
                      fmt::format("tokens/s through {} layers", run->of.layers), run->tokens_per_s()});
        const Rect top = ui::next_area(c, 28 * 4);
        float y = top.y0;
        const auto row = [&](const char* words, std::string value) {
            y = ui::row(c, {words, std::move(value)}, {top.x0, y, top.x1, y}, c.px(28));
        };
        row("against BF16", gain_text(speeds.gain(speeds.spec.weights, speeds.spec.batch)));
        row("weights to read", fmt::format("{} MB", screen_number(weight_bytes(run->of) / 1e6, 3)));
        row("cache to read", fmt::format("{} MB", screen_number(cache_bytes(run->of) / 1e6, 3)));
        row("copy", fmt::format("{} TB/s", screen_number(run->copy_bytes_per_ms / 1e9, 3)));
        ui::advance(top);
    } else if (!speeds.runs.empty()) {
        ui::wrapped(c,
                    fmt::format("{} was not measured at batch {}: inputs in BF16 are for up to 8 sequences.",
                                info_of(speeds.spec.weights).label, speeds.spec.batch));
    }
    if (speeds.runs.empty()) return;
    const InferCase& of = speeds.runs.front()->of;
    ui::wrapped(c, fmt::format("Recorded on the {}, {}, by fp8lab bench infer: {} layers of width {} with "
                               "{}/{} heads and an FFN "
                               "of {}, {} positions a sequence. Embedding and head are not in it.",
                               short_gpu_name(speeds.recording->gpu), speeds.runs.front()->date, of.layers,
                               of.d, of.heads, of.kv_heads, of.ffn, of.context));
}

}  // namespace fp8lab::serve
