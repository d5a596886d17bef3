#include "labs/lower/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/ui/draw.h"
#include "labs/ui/plot/choose.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::lower {
namespace {

using ui::Context;

constexpr float kTitles = 24, kHeads = 22, kGap = 14;  // of a table
constexpr float kLeastFigure = 208;

}  // namespace

void LowerView::stage(Context& c, Rect area) {
    if (lab_->outcome->layers.empty()) return;
    if (lab_.shows("cascade")) return draw_cascade(c, area);
    if (lab_.shows("kv")) return draw_kv(c, area);
    if (lab_.shows("tokens")) return draw_token_figures(c, area);
    draw_mix(c, area);
}

// The figures of mix or ranges over the two tables.
void LowerView::draw_mix(Context& c, Rect area) {
    const Outcome& o = *lab_->outcome;
    const float layers = kTitles + kHeads + 34 * static_cast<float>(std::min(o.layers.size(), kMostRows)),
                outputs = kTitles + kHeads + 4 * 30;
    const float both = layers + outputs + 2 * kGap, height = area.height() / c.scale;
    const bool low = height - both < kLeastFigure;
    const float tables = low ? std::max(layers, outputs) + 44 : both;
    const float split = area.y1 - c.px(std::min(tables, height - 150));
    const Rect top{area.x0, area.y0, area.x1, split - c.px(kGap)};
    if (lab_.shows("ranges"))
        draw_ranges(c, top);
    else
        draw_pareto(c, lab_.figures().front(), top);
    Rect below{area.x0, split, area.x1, area.y1};
    if (!low) {
        draw_tables(c, below);
        return;
    }
    static const std::array<std::string, 2> kParts = {"Layers", "Outputs"};
    ui::corner_switch(c, "lower.part", {area.x1, split}, 190, kParts, part_);
    below.y0 += c.px(38);
    if (part_ == 0)
        draw_layers(c, below, 30);
    else
        draw_outputs(c, below, 28);
}

void LowerView::draw_pareto(Context& c, const Figure& figure, Rect area) {
    std::vector<Series> names;
    const Figure marks = without_names(figure, names);
    const ui::PlotResult plot =
        ui::plot(c, "lower.pareto", marks, upper_, area, {.crosshair = false, .y_tick_width = 52});
    choose_format(c, marks, plot);
    draw_dots(c, figure, plot);
    draw_names(c, marks, names, plot, draw_knob(c, plot));
}

// A mark of one format everywhere: a click takes it for every layer.
void LowerView::choose_format(Context& c, const Figure& figure, const ui::PlotResult& plot) {
    const auto format_of = [&](const ui::PlotResult::Hit& hit) -> const OutputRow* {
        const std::string& name = figure.series[hit.series].name;
        const auto& rows = lab_->outcome->uniforms;
        const auto row = std::ranges::find_if(
            rows, [&](const OutputRow& one) { return name == fmt::format("##{}", one.format->id); });
        return row == rows.end() ? nullptr : &*row;
    };
    const auto stands = [&](const ui::PlotResult::Hit& hit) { return format_of(hit) != nullptr; };
    const auto hit = ui::chosen_mark(c, plot, stands);
    if (!plot.nearest || !stands(*plot.nearest)) return;
    const OutputRow& row = *format_of(*plot.nearest);
    const Point at = plot.to_px(plot.nearest->x, plot.nearest->y);
    ImGui::SetCursorScreenPos({at.x - c.px(9), at.y - c.px(9)});
    ImGui::Dummy({c.px(18), c.px(18)});
    ui::tooltip(c, fmt::format("{} everywhere", row.format->label),
                fmt::format("Divergence {}, {:.2f} bits per weight. A click takes it for every layer.",
                            divergence_text(row.score.divergence), row.bits));
    if (hit) set(fmt::format("uniform={}", row.format->id));
}

// The mix under the pointer: its formats; a click takes it.
void LowerView::draw_dots(Context& c, const Figure& figure, const ui::PlotResult& plot) {
    const Cloud* cloud = lab_->cloud();
    if (!cloud || !plot.hovered) return;
    if (plot.nearest && figure.series[plot.nearest->series].name.starts_with("##"))
        return;  // choose_format()
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    constexpr float kReach = 8;
    std::size_t nearest = 0;
    float best = c.px(kReach);
    for (std::size_t i = 0; i < cloud->size(); ++i) {
        const MixPoint point = cloud->point(i);
        if (figure.x.gap && figure.x.gap->holds(point.bits)) continue;  // not drawn
        const Point at = plot.to_px(point.bits, std::max(point.divergence, figure.y.range->lo));
        const float away = std::hypot(at.x - mouse.x, at.y - mouse.y);
        if (away < best) best = away, nearest = i;
    }
    if (best >= c.px(kReach)) return;
    const Mix mix = cloud->mix(nearest);
    if (ImGui::IsMouseReleased(ImGuiMouseButton_Left) && !upper_.drag.active) lab_->take(mix);
    ImGui::SetCursorScreenPos({mouse.x - 1, mouse.y - 1});
    ImGui::Dummy({2, 2});
    ui::tooltip(c, mix_words(mix),
                fmt::format("Divergence {}, {:.2f} bits per weight. A click takes this mix.",
                            divergence_text(cloud->point(nearest).divergence), cloud->point(nearest).bits));
}

// The own mix as a knob: dragged along x it sets the budget.
Rect LowerView::draw_knob(Context& c, const ui::PlotResult& plot) {
    const Outcome& o = *lab_->outcome;
    const double bits = std::clamp(o.own.bits, plot.extents.x.lo, plot.extents.x.hi);
    const double own = std::max(o.own.score.divergence, plot.extents.y.lo);
    const Point at = plot.to_px(bits, own);
    ImGui::GetWindowDrawList()->AddCircleFilled({at.x, at.y}, c.px(11.5F), c.color(Role::text));
    ui::knob(c, at, 8);
    const float reach = c.px(13);
    const Rect knob{at.x - reach, at.y - reach, at.x + reach, at.y + reach};
    const ui::Press press = ui::press(c, "lower.mix", knob, 13);
    const std::string why = lab_.why_not("budget");
    ui::tooltip(
        c, "Your mix",
        why.empty() ? "Drag along the axis: bits for a budget. The best mix under it is taken." : why);
    if (!why.empty()) return knob;
    constexpr double kStep = 0.05;
    double budget = 0;
    if (press.held && ImGui::IsMouseDragging(ImGuiMouseButton_Left, c.px(3)))
        budget = plot.x_at(ImGui::GetIO().MousePos.x);
    else if (const int arrows = press.focused ? ui::arrow_step() : 0; arrows != 0)
        budget = std::min(lab_->params.budget, bits + kStep) + arrows * kStep;
    if (budget > 0) set(fmt::format("budget={:.2f}", std::clamp(budget, 4.01, kMostBits)));
    return knob;
}

std::vector<std::pair<std::string, std::string>> LowerView::status() const {
    const Outcome& o = *lab_->outcome;
    if (lab_.shows("tokens"))
        return {{"model", fmt::format("transformer, 2 blocks of 64, seed {}", lab_->params.tokens.model)},
                {"data", lab_->tokens->sweep ? fmt::format("{} held-out tokens", lab_->tokens->sweep->tokens)
                                             : std::string("–")}};
    if (!o.setup) return {};
    return {{"model", o.setup->subject->name}, {"data", o.setup->subject->data.name}};
}

std::unique_ptr<LabView> make_view(Lab& lab) {
    return std::make_unique<LowerView>(static_cast<LowerLab&>(lab));
}

}  // namespace fp8lab::lower
