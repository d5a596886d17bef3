// The lower figures of L12: six kinds of tensor, and the mean of n casts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "labs/four/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::four {
namespace {

using ui::Context;

}  // namespace

// Names left, zeros right, between them the arrows on one axis; a press chooses the tensor.
void FourView::draw_data(Context& c, Figure figure, Rect area, float title_to) {
    ui::region(c, "data", area);
    const Outcome& o = *lab_->outcome;
    const bool low = area.height() < c.px(230);
    float heads = ui::heading(c, figure.title, {area.x0, area.y0, title_to, area.y1}) + c.px(low ? 9 : 11);
    if (title_to < area.x1) heads = std::max(heads, area.y0 + c.px(46));  // below the switch
    figure.title.clear();
    const float names = c.px(std::clamp(area.width() / c.scale * 0.25F, 88.0F, 112.0F)), zeros = c.px(84),
                axis = c.px(low ? 24 : 44);
    const Rect bars{area.x0 + names, heads + c.px(12), area.x1 - zeros, area.y1 - axis};
    const auto count = static_cast<float>(o.kinds.size());
    const float row = bars.height() / count;
    ui::head(c, {area.x0, heads}, "SQNR dB", "sqnr", Anchor::left);
    ui::head(c, {area.x1, heads}, "zero %, NVFP4", "underflow");
    // Under the plot: the chosen row, then the grid.
    for (std::size_t i = 0; i < o.kinds.size(); ++i) {
        const float y = bars.y0 + row * static_cast<float>(i);
        const Rect line{area.x0 - c.px(6), y, area.x1 + c.px(6), y + row};
        const bool chosen = o.params.tensor.file.empty() && o.params.tensor.kind == o.kinds[i].id;
        if (ui::press_row(c, "four.kind." + std::string(o.kinds[i].id), line, chosen)) {
            set("file=");
            set("tensor=" + std::string(o.kinds[i].id));
        }
        ui::text_mid(c, {area.x0, y + row / 2}, o.kinds[i].label, {Role::text}, chosen ? kBold13 : kSans13);
        const auto zero = [&](std::size_t r) { return pct_text(o.kinds[i].nvfp4[r].zero_pct, 0); };
        ui::text_mid(c, {area.x1 - c.px(44), y + row / 2}, zero(0), {Role::text}, kMono13, Anchor::right);
        ui::text_mid(c, {area.x1 - c.px(29), y + row / 2}, "→", {Role::muted}, kSans13, Anchor::center);
        ui::text_mid(c, {area.x1, y + row / 2}, zero(1), {Role::text}, kMono13, Anchor::right);
    }
    const Range range = *figure.x.range;
    const auto x_of = [&](double db) {
        return bars.x0 + bars.width() * static_cast<float>((db - range.lo) / (range.hi - range.lo));
    };
    ui::hline(c, bars.x0, bars.x1, bars.y1, {Role::axis});
    const double every = range.hi - range.lo > 16 ? 4 : 2;
    for (double db = std::ceil(range.lo / every) * every; db <= range.hi; db += every) {
        const float x = std::round(x_of(db));
        ui::fill_rect(c, {x, bars.y0, x + ui::hairline(c), bars.y1}, {Role::grid});
        ui::text_mid(c, {x, bars.y1 + c.px(14)}, screen_number(db), {Role::muted}, kMono13, Anchor::center);
    }
    ui::plot(c, "four.data", figure, data_, bars, {.bare = true, .interactive = false, .crosshair = false});
    constexpr std::string_view kWords = "from the mark, as it is, to the arrow head, rotated";
    if (!low && ui::text_width(c, kWords, kSans13) <= area.width())
        ui::text_mid(c, {std::min(bars.x0, area.x1 - ui::text_width(c, kWords, kSans13)), area.y1 - c.px(12)},
                     kWords, {Role::muted}, kSans13);
}

void FourView::draw_mean(Context& c, Figure figure, Rect area) {
    ui::region(c, "mean", area);
    const Means& means = *lab_->means;
    const bool any = !means.nvfp4.n.empty();
    // The values are beside the ends of the lines, right of the plot.
    for (Series& series : figure.series) series.style.end_label.clear();
    const float title = ui::heading(c, figure.title, area);
    figure.title.clear();
    const ui::PlotResult plot =
        ui::plot(c, "four.mean", figure, mean_, {area.x0, title, area.x1 - c.px(any ? 92 : 0), area.y1},
                 {.interactive = false, .y_tick_width = 24, .title_height = 0});
    if (!any) return;
    struct End {
        const char* name;
        double db;
        Role role;
        float y = 0;
    };
    std::vector<End> ends = {{"NVFP4", means.nvfp4.at(kMostCasts).sqnr_db, Role::block},
                             {"MXFP4", means.mxfp4.at(kMostCasts).sqnr_db, Role::text},
                             {"nearest", means.nearest_db[0], Role::block}};
    for (End& end : ends) end.y = std::isfinite(end.db) ? plot.to_px(kMostCasts, end.db).y : plot.area.y0;
    ui::move_apart(ends, c.px(18), plot.area.y0, plot.area.y1);
    for (const End& end : ends) {
        const float x = plot.area.x1 + c.px(8);
        ui::text_mid(c, {x, end.y}, end.name, {end.role, Tone::ink}, kSans13);
        ui::text_mid(c, {area.x1, end.y}, db_text(end.db), {end.role, Tone::ink}, kMono13, Anchor::right);
    }
    struct Line {
        const char* name;
        const MeanLine& of;
        Role role;
    };
    const std::array lines = {Line{"NVFP4", means.nvfp4, Role::block},
                              Line{"with RHT", means.nvfp4_rotated, Role::block},
                              Line{"MXFP4", means.mxfp4, Role::text}};
    const float pitch = c.px(19), right = plot.area.x1 - c.px(4);
    float y = plot.area.y1 - c.px(12) - pitch * static_cast<float>(lines.size());
    if (plot.area.height() < c.px(200)) return;  // no room below the lines: F6 has the words
    ui::text_mid(c, {right, y}, fmt::format("gain, mean of {} casts", kGainCasts), {Role::muted}, kSans13,
                 Anchor::right);
    for (const Line& line : lines) {
        y += pitch;
        const double gain = line.of.at(kGainCasts).gain_pct;
        const std::string value = pct_text(gain, 2) + " %";
        const float wide = ui::text_width(c, value, kMono13);
        ui::text_mid(c, {right, y}, value, {std::fabs(gain) > 0.5 ? Role::sat : Role::text, Tone::ink},
                     kMono13, Anchor::right);
        ui::copyable(c, fmt::format("value.gain.{}", line.name),
                     {right - wide, y - c.px(9), right, y + c.px(9)}, gain);
        ui::text_mid(c, {right - wide - c.px(8), y}, line.name, {line.role, Tone::ink}, kSans13,
                     Anchor::right);
    }
}

}  // namespace fp8lab::four
