// The part "groups": rows of each expert with what pads them, and the recorded times of grouped GEMMs.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/units.h"
#include "labs/experts/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::experts {
namespace {

using ui::Context;

// "5.6 %", "32 %".
std::string zeros(double pct) {
    return pct < 9.95 ? fmt::format("{:.1f} %", pct) : fmt::format("{:.0f} %", pct);
}

// Words of one line with a swatch before each.
void draw_legend(Context& c, Point at, std::span<const std::pair<std::string, Color>> entries) {
    float x = at.x;
    for (const auto& [words, color] : entries) {
        const float half = words.starts_with("line") ? ui::hairline(c) : c.px(5);
        ui::fill_rect(c, {x, at.y - half, x + c.px(10), at.y + half}, color);
        x += c.px(16);
        ui::text_mid(c, {x, at.y}, words, {Role::muted}, kSans13);
        x += ui::text_width(c, words, kSans13) + c.px(18);
    }
}

}  // namespace

void MixtureView::draw_groups(Context& c, Rect area) {
    const Groups& groups = *lab_->groups;
    const int pad = lab_->params.padding();
    const float split = area.y0 + 0.45F * area.height();
    const Rect above{area.x0, area.y0, area.x1, split - c.px(12)}, below{area.x0, split, area.x1, area.y1};
    ui::region(c, "rows", above);
    const float top = ui::heading(c, rows_title(groups, pad), above);
    if (!groups.rows.empty()) {
        draw_legend(c, {above.x0, top + c.px(12)},
                    std::array<std::pair<std::string, Color>, 2>{
                        {{"rows of an expert", {Role::truth, Tone::fill}},
                         {pad == 1 ? "not padded" : "zeros", {Role::muted, Tone::fill, 0.35F}}}});
        ui::plot(c, "experts.rows", without_title(rows_figure(groups, pad)), upper_,
                 {above.x0, top + c.px(24), above.x1, above.y1},
                 {.interactive = false, .y_tick_width = 44, .title_height = 0});
    }
    const Times times = times_of(lab_->params.card);
    ui::region(c, "time", below);
    const float lower = ui::heading(c, time_title(times), below);
    if (!times.gemms) return;
    draw_legend(
        c, {below.x0, lower + c.px(12)},
        std::array<std::pair<std::string, Color>, 3>{{{"BF16", {Role::bf16, Tone::fill}},
                                                      {"FP8", {Role::e4m3, Tone::fill}},
                                                      {"line: a bound, no prediction", {Role::text}}}});
    Figure figure = without_title(time_figure(times));
    for (Series& series : figure.series) series.style.in_legend = false;
    const std::string other = not_recorded(groups);
    const float note = c.px(other.empty() ? 0 : 24);
    ui::plot(c, "experts.time", figure, lower_, {below.x0, lower + c.px(24), below.x1, below.y1 - note},
             {.interactive = false, .crosshair = false, .y_tick_width = 44, .title_height = 0});
    ui::text_mid(c, {below.x0, below.y1 - c.px(8)}, other, {Role::muted}, kSans13);
}

void MixtureView::draw_groups_rows(Context& c) {
    const Groups& groups = *lab_->groups;
    if (groups.rows.empty()) return;
    const int pad = lab_->params.padding();
    const GroupShape shape = groups.shape(pad);
    ui::headline(c, "experts.result",
                 {zeros(shape.zeros_pct), pad == 1 ? "zeros: rows are not padded" : "of the rows are zeros",
                  shape.zeros_pct});
    const Times times = times_of(lab_->params.card);
    const Rect top = ui::next_area(c, 28 * (times.gemms ? 6 : 4));
    float y = top.y0;
    const auto row = [&](const std::string& words, std::string value, bool strong = false) {
        y = ui::row(c, {words, std::move(value), {Role::text}, strong}, {top.x0, y, top.x1, y}, c.px(28));
    };
    for (const int multiple : kPads)
        if (multiple > 1)
            row(fmt::format("zeros, padded to {}", multiple), zeros(groups.shape(multiple).zeros_pct),
                multiple == pad);
    row("busiest expert, times the mean", screen_number(shape.largest_over_mean, 3));
    if (times.gemms) {
        const auto ridge = [&](const char* product) {
            return fmt::format("{:.0f}, {:.0f} rows", times.gemms->ridge_rows(product, "bf16"),
                               times.gemms->ridge_rows(product, "fp8"));
        };
        row("ridge of fprop, BF16 and FP8", ridge("fprop"));
        row("ridge of wgrad", ridge("wgrad"));
    }
    ui::advance(top);
    ui::wrapped(
        c,
        "Ridge: with fewer rows per group the GPU waits for memory. The bound is the larger of the "
        "time of one group and the bytes at the memory rate of 64 groups; recorded times are 4 % below "
        "to 43 % above it.");
}

}  // namespace fp8lab::experts
