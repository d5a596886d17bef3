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

const Figure* find(const std::vector<Figure>& figures, std::string_view id) {
    const auto it = std::ranges::find(figures, id, &Figure::id);
    return it == figures.end() ? nullptr : &*it;
}

std::size_t shown_arm(const TrainSpec& spec) { return spec.arms.size() > 1 ? 1 : 0; }

void title(ui::Context& c, Rect area, const std::string& words, std::string_view right = {}) {
    const float y = area.y0 + c.px(10);
    ui::text_mid(c, {area.x0, y}, words, {Role::text}, {Face::sans_bold, 15});
    ui::text_mid(c, {area.x1, y}, right, {Role::muted}, {Face::sans, 13}, Anchor::right);
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
    const Rect left{below.x0, below.y0, split - c.px(12), below.y1};
    const TrainSpec spec = lab_.spec();
    const std::size_t arm = shown_arm(spec);
    const auto looks = arm_looks(spec.arms);
    const std::string name = "Tensor health, " + looks[arm].name + " arm", counted = "overflow: steps";
    const auto fits = [&](const std::string& note) {
        return ui::text_width(c, name, kBold15) + ui::text_width(c, note, kSans13) + c.px(16) <= left.width();
    };
    const std::string whole = "underflow, lost: run mean %   " + counted;
    title(c, left, name, fits(whole) ? whole : fits(counted) ? counted : "");
    const Rect rows{left.x0, left.y0 + c.px(24), left.x1, left.y1};
    const ModelPlan plan = model_plan(spec);
    std::string shown = to_string(lab_.shown_tensor());
    if (lab_.history().arms().empty()) {
        health_table(c, rows, History::blank(plan), spec.arms[arm], plan, shown);
    } else {
        health_table(c, rows, lab_.history().arms()[arm], spec.arms[arm], plan, shown);
    }
    lab_.show_tensor(shown);
    ui::fill_rect(c, {split, below.y0, split + ui::hairline(c), below.y1}, {Role::line});
    right_column(c, figures, {split + c.px(20), below.y0, area.x1, below.y1});
    ui::hline(c, area.x0, area.x1, bar.y0, {Role::line});
    const Rect row{area.x0, bar.y0 + c.px(14), area.x1, bar.y0 + c.px(46)};
    transport_.draw(c, row, transport_state(), [this](const std::string& action) { lab_.act(action); });
    tell_end(c);
}

void TrainView::curves(ui::Context& c, const std::vector<Figure>& figures, Rect area) {
    const float gap_height = std::clamp(0.37F * area.height() / c.scale, 104.0F, 150.0F);
    const Rect loss_area{area.x0, area.y0, area.x1, area.y1 - c.px(gap_height)};
    const Rect gap_area{area.x0, loss_area.y1 + c.px(8), area.x1, area.y1};
    const std::vector<Figure> recorded = lab_.recorded_curves();
    Figure loss = recorded.empty() ? *find(figures, "loss") : recorded[0];
    loss.x.visible = false;                // the gap below shows the steps
    if (loss_area.height() < c.px(130)) {  // too low for a line of its own over the axis
        loss.y.label.clear();
        loss.subtitle = "loss: each batch, mean of the last 50";
    }
    const std::string words = lab_.recorded_words();
    if (!words.empty()) loss.subtitle = words;
    Figure gap = recorded.empty() ? *find(figures, "gap") : recorded[1];
    gap.title.clear();
    gap.subtitle.clear();
    const ui::PlotResult drawn = ui::plot(c, "train.loss", loss, loss_, loss_area, {.below = &gap});
    gap_.cursor_x = loss_.cursor_x;
    gap_.view.x = loss_.view.x;
    gap_.follow = loss_.follow;
    const std::string value = take_gap_label(gap);
    const ui::PlotResult shown = ui::plot(c, "train.gap", gap, gap_, gap_area, {.title_height = 0});
    ui::text_mid(c, {shown.area.x1, shown.to_px(0, kPassGapPct).y - c.px(11)}, value,
                 {arm_looks(lab_.spec().arms)[shown_arm(lab_.spec())].role, Tone::ink}, {Face::mono, 15},
                 Anchor::right);
    loss_.cursor_x = gap_.cursor_x;
    loss_.view.x = gap_.view.x;
    loss_.follow = gap_.follow;
    if (words.empty()) return;
    // Paler than a run of one's own.
    ui::fill_rect(c, {drawn.area.x0, drawn.area.y0, area.x1, area.y1}, {Role::surface, Tone::line, 0.5F});
    ui::probe(c, "train.loss.recorded", area, {}, words);
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
    if (find(figures, "boundary-a")) choices.emplace_back("Boundary");
    choices.emplace_back("Histogram");
    if (find(figures, "step")) choices.emplace_back("One step");
    const auto recorded = lab_.recorded();
    if (recorded) choices.emplace_back("Recorded");
    int at = ui::index_of_choice(choices, picture_);
    if (choices.size() > 1) {
        ImGui::SetCursorScreenPos({area.x0, area.y1 - c.px(32)});
        ImGui::BeginChild("train.picture", {area.width(), c.px(32)});
        if (ui::segmented(c, "train.picture", choices, at)) picture_ = choices[static_cast<std::size_t>(at)];
        ImGui::EndChild();
        area.y1 -= c.px(40);
    }
    const std::string& chosen = choices[static_cast<std::size_t>(at)];
    if (chosen == "Boundary") return boundaries(c, figures, area);
    if (chosen == "Recorded") return recorded_table(c, area, *recorded, recording_);
    if (chosen == "One step") {
        const bool low = area.height() < c.px(180);
        Figure step = step_figure(lab_.history(), arm_looks(lab_.spec().arms), low);
        if (low) step.title.clear();  // the panel says it
        ui::plot(c, "train.one_step", step, step_, area,
                 {.crosshair = false, .y_tick_width = 0, .title_height = low ? 0.0F : 28.0F});
        return;
    }
    ui::plot(c, "train.histogram", *find(figures, "histogram"), histogram_, area);
}

void TrainView::boundaries(ui::Context& c, const std::vector<Figure>& figures, Rect area) {
    constexpr std::array<const char*, 3> kIds = {"boundary-a", "boundary-b", "boundary-c"};
    const std::size_t count = lab_.history().arms().size();
    const auto looks = arm_looks(lab_.spec().arms);
    title(c, area, find(figures, kIds.at(shown_arm(lab_.spec())))->title);
    const float gap = c.px(12);
    const float width = (area.width() - gap * static_cast<float>(count - 1)) / static_cast<float>(count);
    for (std::size_t i = 0; i < count; ++i) {
        const Figure* figure = find(figures, kIds.at(i));
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

// ---- run, step, reset ----

ui::TransportState TrainView::transport_state() const {
    const live::TimeLeft time = lab_.time_left();
    return {.step = lab_.step(),
            .steps = lab_.spec().steps,
            .running = lab_.running(),
            .stepping = lab_.stepping(),
            .ended = lab_.finished() || lab_.failed(),
            .preparing = lab_.preparing(),
            .time = time.words,
            .time_help = time.help};
}

bool TrainView::key(ui::Context&, ui::Key key) {
    return transport_.key(key, transport_state(), [this](const std::string& action) { lab_.act(action); });
}

std::span<const ViewKey> TrainView::keys() const {
    static constexpr std::array kKeys = {
        ViewKey{"Space", "runs and pauses", ui::Key::space, ui::Key::space},
        ViewKey{".", "trains one step", ui::Key::period, ui::Key::period},
    };
    return kKeys;
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
    return std::make_unique<TrainView>(dynamic_cast<TrainLab&>(lab));
}

}  // namespace fp8lab::train
