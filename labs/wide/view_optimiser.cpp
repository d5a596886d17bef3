// The stage of L14's experiment "optimiser".
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"
#include "labs/wide/view.h"

namespace fp8lab::wide {
namespace {

using ui::Context;

std::string three_digits(double v) {
    return v != 0 && std::fabs(v) < 0.001 ? screen_number(v, 3) : fmt::format("{:.3f}", v);
}

}  // namespace

void WideView::draw_optimiser(Context& c, Rect area) {
    std::vector<Figure> figures = lab_.figures();
    const float height = area.height() / c.scale;
    const float top = area.y0 + c.px(std::clamp(0.46F * height, 190.0F, 480.0F));
    draw_forget(c, std::move(figures[0]), {area.x0, area.y0, area.x1, top});
    const float rule = top + c.px(height < 600 ? 6 : 12);
    ui::hline(c, area.x0, area.x1, rule, {Role::line});
    const ui::Halves below =
        ui::halves(c, "wide", {area.x0, rule + c.px(height < 600 ? 8 : 14), area.x1, area.y1},
                   {"Gap", "Formats"}, part_);
    if (below.shows_left) draw_gap(c, std::move(figures[1]), below.left);
    if (below.shows_right) draw_cliff(c, std::move(figures[2]), below.right);
}

void WideView::draw_forget(Context& c, Figure figure, Rect area) {
    ui::region(c, "forget", area);
    const Optimiser& o = *lab_->optimiser;
    const float room = c.px(area.width() < c.px(680) ? 124 : 150);
    const float heading = ui::heading(c, figure.title, area);
    figure.title.clear();
    for (Series& series : figure.series) series.style.in_legend = false;
    const ui::PlotResult plot =
        ui::plot(c, "wide.forget", figure, upper_, {area.x0, heading, area.x1 - room, area.y1},
                 {.interactive = false, .title_height = 0});
    if (o.exact.empty()) return;
    const double last = o.spec.length();
    const auto y_of = [&](double v) { return plot.to_px(last, v).y; };
    std::vector<ui::EndWords> ends = {
        {y_of(o.exact.back()), three_digits(o.exact.back()), "exact", {Role::text}}};
    const Color ink{find_format(o.spec.format).role, Tone::ink};
    const std::string format = format_label(o.spec.format);
    ends.push_back({y_of(o.nearest.v.back()), three_digits(o.nearest.v.back()), format, ink});
    if (o.spec.format != "fp32")
        ends.push_back({y_of(o.stochastic.v.back()), three_digits(o.stochastic.v.back()), "stochastic", ink});
    // The formats that stand at the same value.
    std::string also;
    for (const Optimiser::End& end : o.ends)
        if (end.format != o.spec.format && o.spec.scale == "one" &&
            std::fabs(end.nearest - o.nearest.v.back()) < 5e-4)
            also += (also.empty() ? "" : ", ") + format_label(end.format);
    if (!also.empty() && o.spec.rounding == "nearest" && o.nearest.stuck)
        ends.push_back({y_of(o.nearest.v.back()) + 1, "", also, {Role::muted}});
    ui::end_words(c, std::move(ends), plot.area.x1 + c.px(12),
                  {area.x0, plot.area.y0 - c.px(4), area.x1, plot.area.y1});
    // The distance, where it is one.
    const double v = o.v_end(), exact = o.exact.back();
    const float a = y_of(v), b = y_of(exact), x = plot.area.x1 + c.px(5);
    if (o.error_pct() <= kMostOff_pct || std::fabs(a - b) < c.px(40)) return;
    ui::fill_rect(c, {x, std::min(a, b), x + ui::hairline(c), std::max(a, b)}, {Role::axis});
    ui::text_mid(c, {x - c.px(12), (a + b) / 2},
                 fmt::format("{} % too {}", share_text(o.error_pct()), v > exact ? "large" : "small"),
                 {Role::text}, kBold15, Anchor::right);
}

void WideView::draw_gap(Context& c, Figure figure, Rect area) {
    const Optimiser& o = *lab_->optimiser;
    const bool low = area.height() < c.px(300);
    float y = ui::heading(c, figure.title, area) + c.px(low ? 2 : 20);
    figure.title.clear();
    const std::string format = format_label(o.spec.format);
    if (o.at > 0) {
        const Rect line{area.x0, y, area.x1, y + c.px(low ? 40 : 62)};
        const ui::PlotResult plot = ui::plot(c, "wide.gap", figure, left_, line,
                                             {.bare = true, .interactive = false, .crosshair = false});
        if (!low)
            ui::text_mid(c, {plot.to_px(o.at, 0).x, y - c.px(9)},
                         o.spec.rounding == "stochastic"
                             ? std::string("half a gap to either side")
                             : fmt::format("all of this rounds to {}", screen_number(o.at, 5)),
                         {find_format(o.spec.format).role, Tone::ink}, kSans13, Anchor::center);
        // The step as an arrow, to scale.
        const Point from = plot.to_px(o.at, 0);
        const float to = std::max(plot.to_px(o.at * o.spec.beta2, 0).x, plot.area.x0);
        const float head = c.px(5);
        if (from.x - to > c.px(6))
            ImGui::GetWindowDrawList()->AddTriangleFilled({to, from.y}, {to + head, from.y - head},
                                                          {to + head, from.y + head},
                                                          c.color(Color{Role::sat}));
        float free_from = -1e9F;
        for (const double value : {o.below, o.at, o.above}) {
            const std::string words = screen_number(value, 5);
            const float half = ui::text_width(c, words, kMono13) / 2;
            const float x = std::clamp(plot.to_px(value, 0).x, area.x0 + half, area.x1 - half);
            if (x - half < free_from) continue;
            ui::text_mid(c, {x, line.y1 + c.px(10)}, words, {Role::muted}, kMono13, Anchor::center);
            free_from = x + half + c.px(8);
        }
        y = line.y1 + c.px(24);
    }
    const float row = c.px(low ? 22 : 27);
    const bool stuck = o.step_pct() <= o.half_gap_pct() && o.spec.rounding == "nearest";
    const Color ink = stuck ? Color{Role::sat, Tone::ink} : Color{Role::text};
    if (o.at > 0) {
        y = ui::row(c,
                    {fmt::format("step without a gradient: (1 − {}) v", lab_->params.beta2),
                     screen_number(o.at * (1 - o.spec.beta2), 3), ink, stuck},
                    {area.x0, y, area.x1, y}, row);
        y = ui::row(
            c, {fmt::format("half the gap below v in {}", format), screen_number((o.at - o.below) / 2, 3)},
            {area.x0, y, area.x1, y}, row);
        const int mantissa = find_format(o.spec.format).mantissa_bits;
        const std::string from = screen_number(std::ldexp(1.0, -mantissa - 2), 2),
                          to = screen_number(std::ldexp(1.0, -mantissa - 1), 2);
        y = ui::row(c, {"v moves only if 1 − beta2 is above", from + " to " + to}, {area.x0, y, area.x1, y},
                    row);
        ui::hline(c, area.x0, area.x1, y, {Role::line});
    }
    draw_bytes(c, {area.x0, y + c.px(low ? 6 : 14), area.x1, area.y1});
}

void WideView::draw_bytes(Context& c, Rect area) {
    struct Plan {
        const char* name;
        double bytes;
        Role role;
        bool chosen;
    };
    const OptimiserSpec spec = lab_->params.optimiser_spec();
    const OptimiserSpec blocks{.format = "e4m3", .scale = "block128"};
    const bool eight = spec.format == "e4m3" || spec.format == "e5m2";
    const std::array plans = {Plan{"FP32", 8, Role::truth, spec.format == "fp32"},
                              Plan{"BF16", 4, Role::bf16, spec.format == "bf16"},
                              Plan{"FP8, 128", blocks.bytes(), Role::e4m3, eight}};
    const float row = c.px(30);
    if (area.height() < c.px(26) + 3 * c.px(19)) return;
    const double params = lab_->params.params;
    const float y0 = ui::heading(c,
                                 fmt::format("Bytes for m and v, {} parameters",
                                             params >= 1e9 ? screen_number(params / 1e9, 3) + " billion"
                                                           : screen_number(params / 1e6, 3) + " million"),
                                 area) +
                     c.px(2);
    const float pitch = std::min(row, (area.y1 - y0) / 3), names = c.px(72), values = c.px(84);
    for (std::size_t i = 0; i < plans.size(); ++i) {
        const Plan& plan = plans.at(i);
        const float y = y0 + pitch * (static_cast<float>(i) + 0.5F),
                    half = c.px(std::min(10.0F, 0.36F * pitch / c.scale));
        ui::text_mid(c, {area.x0, y}, plan.name, {Role::text}, plan.chosen ? kBold13 : kSans13);
        const float wide = (area.width() - names - values) * static_cast<float>(plan.bytes / 8);
        ui::fill_rect(c, {area.x0 + names, y - half, area.x0 + names + wide, y + half},
                      {plan.role, Tone::fill});
        const double gb = plan.bytes * params / 1e9;
        ui::text_mid(c, {area.x1, y},
                     gb >= 1e4 ? fmt::format("{:.1f} TB", gb / 1e3) : screen_number(gb, 3) + " GB",
                     {Role::text}, plan.chosen ? kMonoBold13 : kMono13, Anchor::right);
    }
    ui::probe(c, "wide.bytes", area);
}

void WideView::draw_cliff(Context& c, Figure figure, Rect area) {
    const float heading = ui::heading(c, figure.title, area);
    figure.title.clear();
    const bool note = area.height() > c.px(200);
    const ui::PlotResult plot =
        ui::plot(c, "wide.cliff", figure, right_, {area.x0, heading, area.x1, area.y1 - c.px(note ? 26 : 0)},
                 {.interactive = false, .y_tick_width = 32, .title_height = 0});
    for (const Cliff& cliff : cliffs()) {
        const bool right = cliff.format == "e5m2";
        const double at = right ? 1.5 : 1.9;  // beside the end of the fall, or before its start
        const auto drop =
            std::ranges::find_if(cliff.points, [&](const CliffPoint& p) { return p.ratio < at; });
        if (drop == cliff.points.end()) continue;
        const Point here = plot.to_px(drop->step, 1.62);
        ui::text_mid(c, {here.x + c.px(right ? 4 : -8), here.y}, format_label(cliff.format),
                     {find_format(cliff.format).role, Tone::ink}, kBold13,
                     right ? Anchor::left : Anchor::right);
    }
    const Point beta2 = plot.to_px(1 - lab_->optimiser->spec.beta2, 0.5);
    const std::string words = lab_->params.beta2;
    const bool room = beta2.x - ui::text_width(c, words, kMonoBold13) - c.px(8) > plot.area.x0;
    ui::text_mid(c, {beta2.x + c.px(room ? -6 : 6), plot.area.y1 - c.px(12)}, words, {Role::text},
                 kMonoBold13, room ? Anchor::right : Anchor::left);
    if (note)
        ui::text_mid(c, {area.x0, area.y1 - c.px(8)}, "2: nothing was forgotten. 1: as it should be.",
                     {Role::muted}, kSans13);
}

}  // namespace fp8lab::wide
