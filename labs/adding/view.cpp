#include "labs/adding/view.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/base/units.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab::adding {

namespace {

using ui::Context;

constexpr float kRow = 32, kHead = 34;

std::string value_text(double value) { return std::isinf(value) ? "never" : format_number(value, 4, true); }

}  // namespace

void AddingView::stage(Context& context, Rect area) {
    const std::vector<Figure> figures = lab_.figures();
    const Table table = lab_->table();
    // The table gives way where the figures would become too low to read.
    const float wanted = context.px(kHead + 14 + kRow * static_cast<float>(table.rows.size()));
    const bool has_table = area.height() - wanted >= context.px(360);
    const float foot = has_table ? area.y1 - wanted : area.y1;
    if (drawn_ != lab_->outcome->params.experiment) {
        main_plot_ = why_plot_ = {};
        drawn_ = lab_->outcome->params.experiment;
    }
    const float split = std::round(area.y0 + 0.58F * (foot - area.y0));
    ui::plot(context, "adding." + figures[0].id, figures[0], main_plot_,
             {area.x0, area.y0, area.x1, split - context.px(8)});
    ui::plot(context, "adding." + figures[1].id, figures[1], why_plot_,
             {area.x0, split + context.px(8), area.x1, foot});
    if (!has_table) return;
    ui::region(context, "table", {area.x0, foot + context.px(8), area.x1, area.y1});
    draw_table(context, table, {area.x0, foot + context.px(8), area.x1, area.y1});
}

void AddingView::draw_table(Context& context, const Table& table, Rect area) {
    const bool roomy = area.width() >= context.px(700);
    const auto shown = [&](const Table::Column& column) { return roomy || column.narrow; };
    const auto count = static_cast<float>(std::ranges::count_if(table.columns, shown));
    const float name_width = context.px(roomy ? 170 : 150), gap = context.px(16);
    // Each as wide as its head, and what is left shared out.
    float heads = 0;
    for (const Table::Column& column : table.columns)
        if (shown(column)) heads += ui::text_width(context, column.head, kSans13) + gap;
    const float more = std::clamp((area.width() - name_width - heads) / count, 0.0F, context.px(80));
    std::vector<float> widths = {name_width};
    float x = area.x0 + name_width;
    for (const Table::Column& column : table.columns) {
        if (!shown(column)) continue;
        widths.push_back(ui::text_width(context, column.head, kSans13) + gap + more);
        x += widths.back();
        ui::text_mid(context, {x, area.y0 + context.px(20)}, column.head, {Role::muted}, kSans13,
                     Anchor::right);
    }
    float y = area.y0 + context.px(kHead);
    for (const Table::Row& row : table.rows) {
        ImGui::SetCursorScreenPos({area.x0, y});
        y += context.px(kRow);
        std::vector<ui::Cell> cells = {{.text = row.label,
                                        .role = row.role,
                                        .mono = false,
                                        .strong = row.chosen,
                                        .anchor = Anchor::left}};
        for (std::size_t i = 0; i < table.columns.size(); ++i) {
            if (!shown(table.columns[i])) continue;
            const double value = row.values[i];
            cells.push_back({.text = value_text(value),
                             .role = value == 0 ? Role::muted : Role::text,
                             .strong = row.chosen,
                             .value = std::isinf(value) ? std::nullopt : std::optional(value)});
        }
        ui::table_row(context, cells, widths);
    }
}

void AddingView::draw_below(Context& context, float) {
    if (lab_->outcome->params.experiment != "dot") return;
    const Hardware hardware = lab_->hardware();
    ui::divider(context);
    ui::text(context, "The same product on a GPU", Role::text, {Face::sans_bold, 15});
    if (hardware.lines.empty()) {
        ui::warning(context, hardware.problem);
        return;
    }
    ui::badge(context, hardware.provenance);
    ui::wrapped(context,
                hardware.where + ": E4M3 to FP32, 256×256 outputs, with and without fast accumulation.");
}

std::vector<std::pair<std::string, std::string>> AddingView::status() const {
    return {{"seed", std::to_string(lab_->params.seed)}, {"experiment", lab_->params.experiment}};
}

std::unique_ptr<LabView> make_view(Lab& lab) {
    return std::make_unique<AddingView>(static_cast<AddingLab&>(lab));
}

}  // namespace fp8lab::adding
