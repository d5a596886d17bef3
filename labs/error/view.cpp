#include "labs/error/view.h"

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "labs/seeded.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::error {

namespace {

using ui::Context;

constexpr float kGutter = 52;

// The glossary's entry of a column of the table.
std::string_view term_of(std::string_view column) {
    if (column == "sqnr_db") return "sqnr";
    if (column == "rel_l2") return "relative-l2";
    if (column == "underflow_pct") return "underflow";
    return column == "overflow_pct" ? "saturation" : "relative-error";
}

}  // namespace

void ErrorView::stage(Context& context, Rect area) {
    // Blind, the table would tell the answer.
    const float table = context.px(72 + 32 * static_cast<float>(lab_->outcome->rows.size()));
    const bool has_table = !lab_->outcome->params.blind && area.height() - table >= context.px(200);
    draw_plots(context, {area.x0, area.y0, area.x1, has_table ? area.y1 - table : area.y1});
    if (!has_table) return;
    const Rect below{area.x0, area.y1 - table + context.px(8), area.x1, area.y1};
    ui::region(context, "table", below);
    draw_table(context, below);
}

void ErrorView::draw_plots(Context& context, Rect area) {
    const std::vector<Figure> figures = lab_.figures();
    // The tensor gives way where the error would become too low to read.
    const bool has_tensor = area.height() >= context.px(400);
    const float low = has_tensor ? std::clamp(0.3F * area.height(), context.px(110), context.px(170)) : 0;
    const Rect upper{area.x0, area.y0, area.x1, area.y1 - low - context.px(8)};
    const Rect lower{area.x0, area.y1 - low, area.x1, area.y1};
    ui::link_cursors({&error_plot_, &data_plot_});
    const ui::PlotResult error =
        ui::plot(context, "error.error", figures[0], error_plot_, upper,
                 {.y_tick_width = kGutter, .below = has_tensor ? &figures[1] : nullptr});
    if (!lab_->outcome->params.blind) draw_marker(context, error);
    if (!has_tensor) return;
    const ui::PlotResult tensor =
        ui::plot(context, "error.data", figures[1], data_plot_, lower, {.y_tick_width = kGutter});
    // One x axis: whichever figure the mouse is in leads.
    ui::PlotState& leader = tensor.hovered ? data_plot_ : error_plot_;
    ui::PlotState& other = tensor.hovered ? error_plot_ : data_plot_;
    other.view.x = leader.view.x;
    other.follow = leader.follow;
}

void ErrorView::draw_marker(Context& context, const ui::PlotResult& plot) {
    const double at = lab_->params.at;
    const float x = std::clamp(plot.to_px(at, 1).x, plot.area.x0, plot.area.x1);
    const float y = plot.area.y1, reach = context.px(12);
    const ui::Press press =
        ui::press(context, "error.marker", {x - reach, y - reach, x + reach, y + reach}, 12);
    float to = x;
    if (press.held) to = std::clamp(ImGui::GetIO().MousePos.x, plot.area.x0, plot.area.x1);
    const int arrows = ui::arrow_step();
    if (press.focused) to += context.px(2) * static_cast<float>(arrows);
    if (to != x) {
        const auto fields = lab_.fields();
        set_field(*find_field(fields, "at"), shortest(static_cast<float>(plot.x_at(to))));
    }
    ui::knob(context, {to, y}, 8);
    ui::tooltip(context, "Marker", "Drag it: a number, the value it is rounded to, and the relative error.");

    const std::string words = marker_text(*lab_->outcome, lab_->params.at);
    const float width = ui::text_width(context, words, kSans13), pad = context.px(6);
    const float left = std::clamp(to + context.px(8), plot.area.x0, plot.area.x1 - width - 2 * pad);
    const float middle = plot.area.y1 - context.px(26);
    ui::fill_rect(context, {left, middle - context.px(11), left + width + 2 * pad, middle + context.px(11)},
                  {Role::surface}, 4);
    ui::text_mid(context, {left + pad, middle}, words, {Role::text}, kSans13);
}

void ErrorView::draw_table(Context& context, Rect area) {
    const Outcome& outcome = *lab_->outcome;
    const float name_width = context.px(area.width() >= context.px(700) ? 150 : 96);
    const float pitch = (area.width() - name_width) / static_cast<float>(columns().size());
    std::vector<float> widths = {name_width};
    widths.resize(1 + columns().size(), pitch);

    const TensorSpec& drawn = outcome.params.tensor;
    ui::text_mid(context, {area.x0, area.y0 + context.px(10)},
                 table_title(outcome) + (has_effect(drawn, "seed") ? seed_text(drawn.seed) : ""),
                 {Role::text}, kBold15);
    float x = area.x0 + name_width;
    for (const Column& column : columns()) {
        x += pitch;
        const std::string_view head = pitch >= context.px(124) ? column.head : column.short_head;
        ui::head(context, {x, area.y0 + context.px(40)}, head, term_of(column.id));
    }
    float y = area.y0 + context.px(54);
    for (std::size_t i = 0; i < outcome.rows.size(); ++i) {
        const Row& row = outcome.rows[i];
        ImGui::SetCursorScreenPos({area.x0, y});
        y += context.px(32);
        std::vector<ui::Cell> cells = {{.text = row.rounder.notebook ? "notebook" : row.rounder.label,
                                        .role = row.rounder.role,
                                        .mono = false,
                                        .strong = true,
                                        .anchor = Anchor::left}};
        for (const Column& column : columns()) {
            const double value = column.value(row.metrics);
            const bool fault = column.id == "overflow_pct" && value > 0;
            cells.push_back({.text = format_number(value, 4, true),
                             .role = fault        ? Role::sat
                                     : value == 0 ? Role::muted
                                                  : Role::text,
                             .strong = fault || best_row(outcome, column) == i,
                             .value = value});
        }
        ui::table_row(context, cells, widths);
    }
}

std::vector<std::pair<std::string, std::string>> ErrorView::status() const {
    const Tensor& tensor = lab_->outcome->tensor;
    const std::string elements =
        group_thousands(static_cast<std::int64_t>(tensor.values.size())) + " elements";
    std::vector<std::pair<std::string, std::string>> out;
    if (lab_->params.tensor.file.empty()) out.emplace_back("seed", std::to_string(lab_->params.tensor.seed));
    out.emplace_back("tensor", tensor.name + ", " + elements + tensor.excluded.note());
    return out;
}

std::unique_ptr<LabView> make_view(Lab& lab) {
    return std::make_unique<ErrorView>(static_cast<ErrorLab&>(lab));
}

}  // namespace fp8lab::error
