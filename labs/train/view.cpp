#include "labs/train/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/base/units.h"
#include "labs/live/cost.h"
#include "labs/ui/draw.h"

namespace fp8lab::train {
namespace {

void title(ui::Context& c, Rect area, const std::string& words, std::string_view right = {}) {
    const float y = area.y0 + c.px(10);
    ui::text_mid(c, {area.x0, y}, words, {Role::text}, kBold15);
    ui::text_mid(c, {area.x1, y}, right, {Role::muted}, kSans13, Anchor::right);
}

}  // namespace

// Heights in logical px, from the bottom: controls 48, health and histogram, gap, and the loss takes what is
// left.
void TrainView::stage(ui::Context& c, Rect area) {
    const std::vector<Figure> figures = lab_.figures();
    const float height = area.height() / c.scale;
    const float lower = std::clamp(0.40F * height, 208.0F, 300.0F);
    const Rect bar{area.x0, area.y1 - c.px(48), area.x1, area.y1};
    const Rect below{area.x0, bar.y0 - c.px(lower), area.x1, bar.y0 - c.px(8)};
    curves(c, figures, {area.x0, area.y0, area.x1, below.y0 - c.px(height > 600 ? 16 : 6)});
    const float split = std::round(area.x0 + 0.6F * area.width());
    health(c, {below.x0, below.y0, split - c.px(12), below.y1});
    ui::fill_rect(c, {split, below.y0, split + ui::hairline(c), below.y1}, {Role::line});
    right_column(c, figures, {split + c.px(20), below.y0, area.x1, below.y1});
    draw_transport(c, bar);
    tell_end(c);
}

void TrainView::health(ui::Context& c, Rect area) {
    const TrainSpec& spec = lab_.spec();
    const std::size_t arm = shown_arm();
    const auto& arms = lab_.history().arms();
    // A GPU does not count them.
    const bool casts = spec.accumulate.micro_batches > 1 && (arms.empty() || arms[arm].counts_casts());
    const std::string name = "Tensor health, " + lab_.looks()[arm].name + " arm",
                      counted = casts ? "overflow: % of casts" : "overflow: steps";
    const auto fits = [&](const std::string& note) {
        return ui::text_width(c, name, kBold15) + ui::text_width(c, note, kSans13) + c.px(16) <= area.width();
    };
    const std::string whole = "underflow, lost: run mean %   " + counted;
    title(c, area, name, fits(whole) ? whole : fits(counted) ? counted : "");
    const ModelPlan plan = model_plan(spec);
    std::string shown = to_string(lab_.shown_tensor());
    health_table(c, {area.x0, area.y0 + c.px(24), area.x1, area.y1},
                 arms.empty() ? History::blank(plan) : arms[arm], spec.arms[arm], plan,
                 spec.accumulate.micro_batches, shown);
    lab_.show_tensor(shown);
}

void TrainView::curves(ui::Context& c, const std::vector<Figure>& figures, Rect area) {
    constexpr Split kSplit = {0.37F, 104, 150, 8, 130, "loss: each batch, mean of the last 50"};
    const std::vector<Figure> recorded = lab_.recorded_curves();
    std::string value;
    const ui::PlotResult shown =
        draw_curves(c, recorded.empty() ? *live::find_figure(figures, "loss") : recorded[0],
                    recorded.empty() ? *live::find_figure(figures, "gap") : recorded[1], area, kSplit,
                    [&](Figure& gap) { value = take_gap_label(gap); })
            .gap;
    ui::text_mid(c, {shown.area.x1, shown.to_px(0, kPassGapPct).y - c.px(11)}, value,
                 {lab_.looks()[shown_arm()].role, Tone::ink}, {Face::mono, 15}, Anchor::right);
}

// Inside the pass band the value stands on the line over the band, where it crosses neither the curve nor
// zero: taken out of the figure and handed back. A blank stays, for the dot and the crosshair. Two arms only:
// more would need their names.
std::string TrainView::take_gap_label(Figure& gap) const {
    const bool in_band = std::abs(gap_pct(lab_.history(), 1)) <= kPassGapPct;
    if (lab_.history().arms().size() != 2 || !in_band) return {};
    for (Series& series : gap.series) {
        if (!series.style.end_label.empty()) return std::exchange(series.style.end_label, " ");
    }
    return {};
}

void TrainView::right_column(ui::Context& c, const std::vector<Figure>& figures, Rect area) {
    std::vector<std::string> choices;
    if (live::find_figure(figures, "boundary-a")) choices.emplace_back("Boundary");
    choices.emplace_back("Histogram");
    if (live::find_figure(figures, "step")) choices.emplace_back("One step");
    const auto recorded = lab_.recorded();
    if (recorded) choices.emplace_back("Recorded");
    int at = ui::index_of_choice(choices, picture_);
    if (choices.size() > 1) {
        const float height = ui::segmented_height(c, choices, area.width());  // two rows where it is narrow
        if (live::switch_at(c, "train.picture", {area.x0, area.y1 - height, area.x1, area.y1}, choices, at))
            picture_ = choices[static_cast<std::size_t>(at)];
        area.y1 -= height + c.px(8);
    }
    const std::string& chosen = choices[static_cast<std::size_t>(at)];
    if (chosen == "Boundary") return boundaries(c, figures, area);
    if (chosen == "Recorded") return draw_recorded(c, area, *recorded);
    if (chosen == "One step") {
        const bool low = area.height() < c.px(180);
        Figure step = step_figure(lab_.history(), lab_.looks(), low);
        if (low) step.title.clear();  // the panel says it
        ui::plot(c, "train.one_step", step, step_, area,
                 {.crosshair = false, .y_tick_width = 0, .title_height = low ? 0.0F : 28.0F});
        return;
    }
    ui::plot(c, "train.histogram", *live::find_figure(figures, "histogram"), histogram_, area);
}

void TrainView::boundaries(ui::Context& c, const std::vector<Figure>& figures, Rect area) {
    constexpr std::array<const char*, 3> kIds = {"boundary-a", "boundary-b", "boundary-c"};
    const std::size_t count = lab_.history().arms().size();
    const auto looks = lab_.looks();
    title(c, area, live::find_figure(figures, kIds.at(shown_arm()))->title);
    const float gap = c.px(12);
    const float width = (area.width() - gap * static_cast<float>(count - 1)) / static_cast<float>(count);
    for (std::size_t i = 0; i < count; ++i) {
        const Figure* figure = live::find_figure(figures, kIds.at(i));
        if (!figure) continue;
        const float x = area.x0 + (width + gap) * static_cast<float>(i);
        const float side = std::min(width, area.height() - c.px(52));
        const float top = area.y0 + c.px(48);
        ui::text_mid(c, {x, area.y0 + c.px(34)}, looks[i].name, {looks[i].role, Tone::ink},
                     {Face::sans_bold, 13});
        ui::plot(c, std::string("train.") + kIds.at(i), *figure, boundary_[i], {x, top, x + side, top + side},
                 {.bare = true, .interactive = false});
    }
}

// A training that ran when the stage was last drawn, and is at its end now.
void TrainView::tell_end(ui::Context& c) {
    const bool ended = ran_ && !lab_.busy() && lab_.step() >= lab_.spec().steps;
    ran_ = lab_.busy();  // the last steps are seen some frames after the worker is at rest
    if (!ended) return;
    const bool both = lab_.history().arms().size() == 2;
    c.notice = {both ? "Both arms finished" : "All arms finished", group_thousands(lab_.step()) + " steps"};
}

std::vector<std::pair<std::string, std::string>> TrainView::status() const {
    const TrainSpec spec = lab_.spec();
    std::string layers;
    for (const int width : spec.layers) layers += (layers.empty() ? "" : "-") + std::to_string(width);
    return {{"seed", std::to_string(spec.seed)},
            {"task", fmt::format("{} {}, batch {}, {}", to_string(spec.task), layers, spec.batch,
                                 to_string(spec.optimizer))}};
}

std::unique_ptr<LabView> make_view(Lab& lab) {
    return std::make_unique<TrainView>(static_cast<TrainLab&>(lab));
}

}  // namespace fp8lab::train
