// The Explore tab of L4: tensor, format and scale, then the format against INT8.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"
#include "labs/window/view.h"

namespace fp8lab::window {

namespace {

using ui::Context;

// A power of two: "2^9 = ×512".
void edit_power(Context& c, const Field& field, std::span<const double> ticks) {
    int& value = **std::get_if<int*>(&field.value);
    double exponent = value;
    if (ui::slider(c, field.info.name, field.info.label, field.info.te_name, exponent, field.min, field.max,
                   {.step = 1, .format = "2^{0:.0f} = ×{1:g}", .ticks = ticks, .default_value = 0.0}))
        value = static_cast<int>(std::lround(exponent));
    ui::tooltip(c, field.info.label, field.info.help);
}

}  // namespace

bool WindowView::draw_own(Context& c, const table::Row& row, const Field&) {
    static constexpr std::array kMargins = {-4.0, 0.0, 4.0, 8.0, 12.0, 16.0},
                                kLoss = {0.0, 4.0, 8.0, 12.0, 16.0, 24.0};
    const std::string_view name = row.field.info.name;
    if (name == "margin") edit_power(c, row.field, kMargins);
    if (name == "loss_scale") edit_power(c, row.field, kLoss);
    return name == "margin" || name == "loss_scale";
}

void WindowView::draw_below(Context& c, float width) {
    ImGui::Dummy({0, c.px(12)});
    const Outcome& o = *lab_->outcome;
    const int margin = lab_->params.source == "manual" ? 0 : o.spec.margin;
    const std::vector<float> columns = {width * 0.46F, width * 0.27F, width * 0.27F};
    const auto format_cell = [](const FormatInfo& format) {
        return ui::Cell{
            .text = std::string(format.label), .role = format.role, .mono = false, .strong = true};
    };
    const std::array heads = {
        ui::Cell{.text = "Same scale rule", .mono = false, .strong = true, .anchor = Anchor::left},
        format_cell(o.own.format), format_cell(o.other.format)};
    ui::table_row(c, heads, columns);
    const Cast &own = o.own.at(margin), &other = o.other.at(margin);
    const auto line = [&](const char* label, double a, double b) {
        const std::array cells = {ui::Cell{.text = label, .mono = false, .anchor = Anchor::left},
                                  ui::Cell{.text = format_number(a, 3, true), .value = a},
                                  ui::Cell{.text = format_number(b, 3, true), .value = b}};
        ui::table_row(c, cells, columns);
    };
    line("SQNR, dB", own.stats.sqnr_db(), other.stats.sqnr_db());
    if (!o.tensor->outliers.empty()) line("SQNR of the others, dB", own.inlier_sqnr_db, other.inlier_sqnr_db);
    line("Underflow, %", own.stats.underflow_pct(), other.stats.underflow_pct());
    line("Lost L1, %", own.stats.lost_l1_pct(), other.stats.lost_l1_pct());
    line("Lost energy, %", own.stats.lost_energy_pct(), other.stats.lost_energy_pct());
    line("Saturated, %", own.stats.overflow_pct(), other.stats.overflow_pct());
    ui::table_end(c, columns);
}

}  // namespace fp8lab::window
