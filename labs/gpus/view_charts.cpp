// The figures "sum" and "scaling" of L15.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/gpus/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::gpus {
namespace {

using ui::Context;

// Lines below a chart, where there is room for them.
int lines_below(const Context& c, Rect area) {
    return area.height() > c.px(280) ? 2 : area.height() > c.px(150) ? 1 : 0;
}
Rect room_of(const Context& c, Rect area, float top, float right) {
    return {area.x0, top, area.x1 - c.px(right),
            area.y1 - c.px(24 + 20 * static_cast<float>(lines_below(c, area)))};
}
// The middle of line `i` of these.
float middle_of(const Context& c, Rect area, int i) {
    return area.y1 - c.px(8 + 20 * static_cast<float>(lines_below(c, area) - 1 - i));
}

}  // namespace

void GpusView::draw_charts(Context& c, const std::vector<Figure>& figures, Rect area) {
    const ui::Halves halves = ui::halves(c, "gpus", area, {"Sums", "Scaling"}, charts_);
    if (halves.shows_left) draw_sums(c, figures[1], halves.left);
    if (halves.shows_right) draw_scaling(c, figures[2], halves.right);
}

void GpusView::draw_sums(Context& c, Figure figure, Rect area) {
    ui::region(c, "sum", area);
    const float heading = ui::heading(c, figure.title, area);
    figure.title.clear();
    const int lines = lines_below(c, area);
    figure.x.visible = false;
    const Rect room = room_of(c, area, heading, 158);
    const ui::PlotResult plot =
        ui::plot(c, "gpus.sum", figure, sum_, room, {.interactive = false, .title_height = 0});
    constexpr std::array<std::pair<double, std::string_view>, 4> kTicks = {
        {{1, "1"}, {8, "8"}, {64, "64"}, {1024, "1 024"}}};
    ui::axis_below(c, plot, "GPUs", kTicks, area.x0);
    const Sums& sums = *lab_->sums;
    if (sums.curves.empty()) return;
    struct Name {
        std::string_view sum, name;
        Role role;
    };
    constexpr std::array kNames = {
        Name{"e5m2", "E5M2 ring", Role::e5m2}, Name{"e4m3", "E4M3 ring", Role::e4m3},
        Name{"bf16", "BF16 ring", Role::bf16}, Name{"e4m3-wire", "E4M3, FP32 sum", Role::e4m3},
        Name{"bf16-tree", "BF16 tree", Role::bf16}};
    std::vector<ui::EndWords> ends;
    for (const Name& name : kNames) {
        const double off = sums.error_pct(name.sum, kSumRanks);
        ends.push_back({plot.to_px(kSumRanks, std::clamp(off, 0.1, 100.0)).y,
                        pct(off),
                        std::string(name.name),
                        {name.role, Tone::ink}});
    }
    ui::end_words(c, std::move(ends), plot.area.x1 + c.px(8), {area.x0, plot.area.y0, area.x1, plot.area.y1});
    if (lines == 0) return;
    const Params& p = lab_->params;
    const double off = sums.error_pct(p.sum, p.world()), kept = sums.kept_pct(p.sum, p.world());
    const std::string words =
        p.world() > kSumRanks
            ? fmt::format("Sums are computed up to {} GPUs.", group_thousands(kSumRanks))
            : fmt::format("{} at {}: {} % off, {} % kept.", sum_label(p.sum), group_thousands(p.world()),
                          screen_number(off, 2), screen_number(kept, 3));
    const float y = middle_of(c, area, 0);
    ui::text_mid(c, {area.x0, y}, words, {Role::muted}, kSans13);
    ui::probe(c, "gpus.kept", {area.x0, y - c.px(10), area.x1, y + c.px(10)}, {}, words);
    if (lines > 1)
        ui::text_mid(c, {area.x0, middle_of(c, area, 1)},
                     fmt::format("Of gradients of {} after {} steps.", kWeight, kSumStep), {Role::muted},
                     kSans13);
}

// A press or an arrow key sets the number of GPUs.
void GpusView::draw_scaling(Context& c, Figure figure, Rect area) {
    ui::region(c, "scaling", area);
    const float heading = ui::heading(c, figure.title, area);
    figure.title.clear();
    const int lines = lines_below(c, area);
    figure.x.visible = false;
    const Rect room = room_of(c, area, heading, 118);
    const ui::PlotResult plot =
        ui::plot(c, "gpus.scaling", figure, scaling_, room, {.interactive = false, .title_height = 0});
    constexpr std::array<std::pair<double, std::string_view>, 4> kTicks = {
        {{1, "1"}, {16, "16"}, {512, "512"}, {16384, "16 384"}}};
    ui::axis_below(c, plot, "GPUs", kTicks, area.x0);
    const ui::Press press = ui::press(c, "gpus.line", plot.area, 2);
    const auto choose = [&](double log2_gpus) {
        const double at = std::clamp(std::round(log2_gpus), 0.0, std::log2(kMostGpus));
        set(fmt::format("gpus={:.0f}", std::exp2(at)));
    };
    if (press.clicked || press.held)
        if (const auto mouse = ImGui::GetIO().MousePos; plot.area.contains({mouse.x, mouse.y}))
            choose(std::log2(plot.x_at(mouse.x)));
    if (const int arrows = press.focused ? ui::arrow_step() : 0; arrows != 0)
        choose(std::log2(lab_->params.world()) + arrows);
    std::vector<ui::EndWords> ends;
    for (const Series& series : figure.series) {
        const auto* line = std::get_if<LineSeries>(&series.shape);
        if (!line || series.name.empty()) continue;
        const double last = line->y->back();
        ends.push_back({plot.to_px(kMostGpus, std::clamp(last, 0.0, 110.0)).y,
                        fmt::format("{:.0f}", last),
                        series.name,
                        {series.style.color.role, Tone::ink}});
    }
    ui::end_words(c, std::move(ends), plot.area.x1 + c.px(8), {area.x0, plot.area.y0, area.x1, plot.area.y1});
    if (lines == 0) return;
    // What the discs are.
    const float left = area.x0 + ui::text_width(c, "recorded:", kSans13) + c.px(10),
                y = middle_of(c, area, 0);
    float x = left;
    const auto name = [&](std::string_view series, Color color, const std::string& words) {
        if (!std::ranges::any_of(figure.series, [&](const Series& s) { return s.name.starts_with(series); }))
            return;
        ImGui::GetWindowDrawList()->AddCircleFilled({x + c.px(4), y}, c.px(3.5F), c.color(color));
        ui::text_mid(c, {x + c.px(14), y}, words, {Role::muted}, kSans13);
        x += c.px(14 + 14) + ui::text_width(c, words, kSans13);
    };
    name("PyTorch", {Role::text}, fmt::format("PyTorch DDP, BF16, {}", short_gpu_name(lab_->source.gpu)));
    const std::vector<MeasuredPoint> own = measured_points(lab_->params, *lab_->recorded_on_several);
    if (!own.empty())
        name("FP8 Lab", {Role::e4m3, Tone::fill},
             fmt::format("FP8 Lab, {}", short_gpu_name(own.front().gpu)));
    const bool some = x > left;
    if (some) ui::text_mid(c, {area.x0, y}, "recorded:", {Role::muted}, kSans13);
    if (some && lines == 1) return;
    ui::text_mid(c, {area.x0, middle_of(c, area, some ? 1 : 0)},
                 some ? "Beyond them a model: no congestion, no failures, one job."
                      : "A model: no congestion, no failures, one job.",
                 {Role::muted}, kSans13);
}

}  // namespace fp8lab::gpus
