#include "labs/gpus/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/units.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::gpus {
using ui::Context;

namespace {

constexpr float kLow = 620;  // logical px: a lower stage shows charts and rows one at a time

}  // namespace

void GpusView::stage(Context& c, Rect area) {
    const std::vector<Figure> figures = lab_.figures();
    const bool low = area.height() < c.px(kLow);
    const Rect bar{area.x0, area.y1 - c.px(32), area.x1, area.y1};
    const float rule = bar.y0 - c.px(low ? 6 : 14);
    const Rect step{area.x0, area.y0, area.x1, area.y0 + c.px(low ? 148 : 176)};
    draw_step(c, figures[0].title, step);
    const float middle = step.y1 + c.px(low ? 6 : 16);
    ui::hline(c, area.x0, area.x1, rule, {Role::line});
    transport_.draw(c, bar, transport_state(), [this](const std::string& action) { act(action); });

    std::vector<std::string> names = {"GPUs", "On paper"};
    if (low) names.insert(names.begin(), "Charts");
    lower_ = std::min(lower_, static_cast<int>(names.size()) - 1);
    const bool charts = low && lower_ == 0;
    const float charts_end = low ? rule - c.px(6) : area.y1 - c.px(48 + 14 + 212);
    const float wide = c.px(low ? 270 : 180);
    Rect lower{area.x0, low ? middle : charts_end + c.px(14), area.x1, rule - c.px(6)};
    if (low) {
        ui::corner_switch(c, "gpus.lower", {area.x1, middle - c.px(2)}, wide / c.scale, names, lower_);
    } else {
        draw_charts(c, figures, {area.x0, middle, area.x1, charts_end});
        ui::hline(c, area.x0, area.x1, lower.y0 - c.px(2), {Role::line});
        lower.y0 += c.px(8);
        ui::corner_switch(c, "gpus.lower", {area.x1, lower.y0 - c.px(4)}, wide / c.scale, names, lower_);
    }
    if (charts) return draw_charts(c, figures, {area.x0, middle + c.px(36), area.x1, charts_end});
    if (names[static_cast<std::size_t>(lower_)] == "GPUs")
        draw_ranks(c, figures[3].title, lower);
    else
        draw_paper(c, figures[4].title, lower);
}

ui::TransportState GpusView::transport_state() const {
    const Training& training = lab_->training;
    return {.step = std::min(lab_->outcome.step, kSteps),
            .steps = kSteps,
            .running = training.busy(),
            .stepping = training.busy() && lab_->params.step == lab_->outcome.step + 1,
            .ended = !training.busy() && (lab_->outcome.step >= kSteps || training.stopped()),
            .preparing = {},
            .time = {},
            .time_help = {}};
}

// A pause rests at the next multiple of 50 steps, so that it can be repeated.
void GpusView::act(const std::string& action) {
    constexpr int kPause = 50;
    if (action != "pause") return lab_.act(action);
    const int next = (lab_->outcome.step / kPause + 1) * kPause;
    lab_.act("run to " + std::to_string(std::min(next, lab_->params.step)));
}

bool GpusView::key(Context&, ui::Key key) {
    return transport_.key(key, transport_state(), [this](const std::string& action) { act(action); });
}

std::span<const ViewKey> GpusView::keys() const {
    static constexpr std::array kKeys = {ViewKey{"Space", "run or pause", ui::Key::space, ui::Key::space},
                                         ViewKey{".", "one step", ui::Key::period, ui::Key::period}};
    return kKeys;
}

std::vector<std::pair<std::string, std::string>> GpusView::status() const {
    const Params& p = lab_->params;
    std::string numerics = "teacher 32-64-64-1, batch 256";
    if (p.world() > kMostRanks)
        numerics += fmt::format(", {} of {} ranks", kMostRanks, group_thousands(p.world()));
    return {{"seed", std::to_string(p.seed)},
            {"numerics", numerics},
            {"times", fmt::format("4096-16384-4096, {} rows a GPU", group_thousands(p.rows_per_gpu()))}};
}

std::unique_ptr<LabView> make_view(Lab& lab) {
    return std::make_unique<GpusView>(static_cast<GpusLab&>(lab));
}

}  // namespace fp8lab::gpus
