// The part "training": the losses, and below them the tokens of expert 1 and the SQNR of its dy over the same steps.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "labs/experts/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::experts {
namespace {

using ui::Context;

constexpr float kNames = 96, kTicks = 44;

Color name_ink(const std::string& recipe) { return {parse_recipe(recipe).role, Tone::ink}; }

}  // namespace

void MixtureView::draw_training(Context& c, Rect area) {
    const Training& training = *lab_->training;
    const float gap = c.px(12), height = area.height() - 2 * gap;
    const Rect top{area.x0, area.y0, area.x1, area.y0 + 0.42F * height};
    const Rect middle{area.x0, top.y1 + gap, area.x1, top.y1 + gap + 0.22F * height};
    const Rect bottom{area.x0, middle.y1 + gap, area.x1, area.y1};
    const auto draw = [&](const char* name, Figure figure, ui::PlotState& state, Rect part, bool axis) {
        ui::region(c, figure.id, part);
        const float from = ui::heading(c, figure.title, part) + c.px(4);
        figure.title.clear();
        figure.x.visible = axis;
        for (Series& series : figure.series) series.style.in_legend = false;
        return ui::plot(c, name, figure, state, {part.x0, from, part.x1 - c.px(kNames), part.y1},
                        {.interactive = false, .y_tick_width = kTicks, .title_height = 0});
    };
    const ui::PlotResult loss = draw("experts.loss", loss_figure(training), upper_, top, false);
    draw("experts.rows_of_1", expert_rows_figure(training), middle_, middle, false);
    const ui::PlotResult dy = draw("experts.dy", dy_figure(training), lower_, bottom, true);
    std::vector<ui::EndWords> losses, casts;
    for (const ArmRun& arm : training.arms) {
        if (arm.loss.empty()) continue;
        const auto at = [](const ui::PlotResult& plot, double value) {
            return plot.to_px(0, std::clamp(value, plot.extents.y.lo, plot.extents.y.hi)).y;
        };
        losses.push_back({at(loss, arm.loss.back()), {}, recipe_label(arm.recipe), name_ink(arm.recipe)});
        double last = std::nan("");
        for (const double db : arm.dy_db)
            if (std::isfinite(db)) last = db;
        if (arm.recipe != "bf16" && std::isfinite(last))
            casts.push_back({at(dy, last), {}, recipe_label(arm.recipe), name_ink(arm.recipe)});
    }
    const auto beside = [&](std::vector<ui::EndWords> words, const ui::PlotResult& plot) {
        if (!words.empty())
            ui::end_words(c, std::move(words), plot.area.x1 + c.px(8),
                          {area.x0, plot.area.y0 + c.px(8), area.x1, plot.area.y1 - c.px(8)});
    };
    beside(std::move(losses), loss);
    beside(std::move(casts), dy);
}

void MixtureView::draw_training_rows(Context& c) {
    const Training& training = *lab_->training;
    const ArmRun* run = training.shown();
    const bool starves = lab_->params.starve != "off";
    if (run && starves && std::isfinite(run->return_db))
        ui::headline(c, "experts.result",
                     {fmt::format("{:.1f} dB", run->return_db), "first cast of dy after it", run->return_db});
    std::vector<std::pair<std::string, std::string>> rows;
    for (const ArmRun& arm : training.arms) {
        const double gap = arm.recipe == "bf16" ? std::nan("") : training.gap_pct(arm);
        if (!std::isfinite(gap)) continue;
        if (rows.empty()) rows.emplace_back("loss against BF16", "tail of 100 steps");
        rows.emplace_back(recipe_label(arm.recipe),
                          fmt::format("{}{:.1f} %", gap < 0 ? "−" : "+", std::fabs(gap)));
    }
    if (run && std::isfinite(run->return_underflow_pct))
        rows.emplace_back("its dy becomes 0, first cast",
                          fmt::format("{} %", screen_number(run->return_underflow_pct, 2)));
    if (rows.empty()) return;
    const Rect top = ui::next_area(c, 28 * static_cast<float>(rows.size()));
    float y = top.y0;
    for (const auto& [words, value] : rows) y = ui::row(c, {words, value}, {top.x0, y, top.x1, y}, c.px(28));
    ui::advance(top);
}

}  // namespace fp8lab::experts
