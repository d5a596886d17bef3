// The part "routing": tokens that change experts for each pair of layers and router, and the margins of their choices.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "labs/experts/model_casts.h"
#include "labs/experts/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::experts {
namespace {

using ui::Context;

constexpr float kRow = 26, kLowRow = 22, kAxis = 44, kGap = 18;

std::string router_words(const std::string& router) {
    return router == "fp32" ? "FP32: not cast" : label_of(router);
}
Color ink_of(const std::string& recipe) {
    const Role role = role_of(recipe);
    return role == Role::truth ? Color{Role::text} : Color{role, Tone::ink};
}
std::string nats(double value) { return value == 0 ? "0" : fmt::format("{:.4f}", value); }

}  // namespace

void MixtureView::draw_routing(Context& c, Rect area) {
    const auto count = static_cast<float>(std::max<std::size_t>(lab_->pairs->rows.size(), 7));
    const float row = area.height() < c.px(560) ? kLowRow : kRow;
    const auto lines =
        static_cast<float>(ui::wrap_lines(c, changed_title(*lab_->pairs), kBold15, area.width()).size());
    const float split = area.y0 + c.px(ui::line_height(15) * lines + 26 + row * count + kAxis);
    draw_pairs(c, {area.x0, area.y0, area.x1, split});
    draw_margins(c, {area.x0, split + c.px(kGap), area.x1, area.y1});
}

// A press on the names of a row chooses it.
void MixtureView::draw_pairs(Context& c, Rect area) {
    const Pairs& pairs = *lab_->pairs;
    ui::region(c, "changed", area);
    const float heading = ui::heading(c, changed_title(pairs), area);
    if (pairs.rows.empty()) return;
    ui::text_at(c, {area.x0, heading + c.px(2)},
                area.width() < c.px(700)
                    ? "line: smallest to largest of seeds 1 to 5"
                    : fmt::format("bar: mean of seeds 1 to 5, line: smallest to largest, ring: seed {}",
                                  lab_->params.seed),
                {Role::muted}, kSans13);
    const float routers = area.x0 + c.px(114), bars = routers + c.px(area.width() < c.px(700) ? 114 : 128);
    const ui::PlotResult plot =
        ui::plot(c, "experts.changed", without_title(changed_figure(pairs, *lab_->routed, false)), upper_,
                 {bars, heading + c.px(24), area.x1, area.y1},
                 {.interactive = false, .crosshair = false, .y_tick_width = 8, .title_height = 0});
    const auto count = static_cast<double>(pairs.rows.size());
    for (std::size_t i = 0; i < pairs.rows.size(); ++i) {
        const Pair& pair = pairs.rows[i].pair;
        const float y = plot.to_px(0, count - 0.5 - static_cast<double>(i)).y;
        const float half = std::fabs(plot.to_px(0, 1).y - plot.to_px(0, 0).y) / 2;
        const bool chosen = pair == lab_->params.pair();
        const Rect line{area.x0 - c.px(6), y - half, plot.area.x0 - c.px(4), y + half};
        if (ui::press_row(c, fmt::format("experts.pair.{}.{}", pair.layers, pair.router), line, chosen)) {
            set("layers_in=" + pair.layers);
            set("router=" + pair.router);
        }
        const Font font = chosen ? kBold13 : kSans13;
        ui::text_mid(c, {area.x0, y}, label_of(pair.layers), ink_of(pair.layers), font);
        ui::text_mid(c, {routers, y}, router_words(pair.router), ink_of(pair.router), font);
    }
    const float names = plot.area.y1 + c.px(14);
    ui::text_mid(c, {area.x0, names}, "layers in", {Role::muted}, kSans13);
    ui::text_mid(c, {routers, names}, "router in", {Role::muted}, kSans13);
}

void MixtureView::draw_margins(Context& c, Rect area) {
    const Routed& routed = *lab_->routed;
    ui::region(c, "margin", area);
    const float heading = ui::heading(c, margin_title(routed), area);
    if (routed.tokens == 0) return;
    ui::text_at(c, {area.x0, heading + c.px(2)},
                "outline: all tokens of both blocks, filled: those that move", {Role::muted}, kSans13);
    ui::plot(c, "experts.margin", without_title(margin_figure(routed)), lower_,
             {area.x0, heading + c.px(26), area.x1, area.y1},
             {.interactive = false, .y_tick_width = 44, .title_height = 0});
}

void MixtureView::draw_routing_rows(Context& c) {
    const Routed& routed = *lab_->routed;
    if (routed.tokens == 0) return;
    const double changed = routed.change.changed_pct(), fresh = routed.change.divergence,
                 kept = routed.change.divergence_kept;
    const bool keeps = lab_->params.routes == "kept";
    const std::string seed = fmt::format("seed {}", routed.spec.seed);
    if (keeps)
        ui::headline(c, "experts.result", {nats(kept), "nats with the choices kept", kept});
    else
        ui::headline(c, "experts.result",
                     {fmt::format("{:.2f} %", changed), "of the tokens change experts", changed});
    const Rect top = ui::next_area(c, keeps ? 28 * 4 : 28 * 3);
    float y = top.y0;
    const auto row = [&](const std::string& words, std::string value, bool strong = false) {
        y = ui::row(c, {words, std::move(value), {Role::text}, strong}, {top.x0, y, top.x1, y}, c.px(28));
    };
    row("divergence, nats", seed);
    row("experts chosen anew", nats(fresh), !keeps);
    if (keeps) {
        row("the experts that BF16 chose", nats(kept), true);
        row("from changed choices",
            routed.is_reference() ? "–" : fmt::format("{:.0f} %", routed.change.choice_share_pct()));
    } else {
        row("margins below 0.01", fmt::format("{:.0f} %", routed.margin_below_1_100_pct));
    }
    ui::advance(top);
}

}  // namespace fp8lab::experts
