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

// Controls of another source or tensor are not shown.
bool belongs(std::string_view field, const CastSpec& spec) {
    if (field == "margin") return spec.source != "manual";
    if (field == "scale") return spec.source == "manual";
    if (field == "percentile" || field == "ema") return spec.source == field;
    const bool zeros = spec.tensor.kind == "zeros" && spec.tensor.file.empty();
    if (field == "zero") return zeros;
    if (field == "outliers") return !zeros && has_effect(spec.tensor, field);
    if (field == "tensor" || field == "sigma" || field == "outlier_ratio" || field == "seed")
        return has_effect(spec.tensor, field);
    return true;
}

// A power of two: "2^9 = ×512".
void edit_power(Context& c, const Field& field, std::span<const double> ticks) {
    if (ui::withheld(c, field)) return;
    int& value = **std::get_if<int*>(&field.value);
    double exponent = value;
    if (ui::slider(c, field.info.name, field.info.label, field.info.te_name, exponent, field.min, field.max,
                   {.step = 1, .format = "2^{0:.0f} = ×{1:g}", .ticks = ticks, .default_value = 0.0}))
        value = static_cast<int>(std::lround(exponent));
    ui::tooltip(c, field.info.label, field.info.help);
}

}  // namespace

void WindowView::draw_field(Context& c, const Field& field, const Field& default_field) {
    static constexpr std::array kMargins = {-4.0, 0.0, 4.0, 8.0, 12.0, 16.0},
                                kLoss = {0.0, 4.0, 8.0, 12.0, 16.0, 24.0};
    if (field.info.name == "margin") return edit_power(c, field, kMargins);
    if (field.info.name == "loss_scale") return edit_power(c, field, kLoss);
    ui::edit(c, field, &default_field);
}

void WindowView::explore(Context& c, float width) {
    const std::vector<Field> fields = lab_.fields(), default_fields = lab_.defaults();
    const auto draw = [&](bool more) {
        for (std::size_t i = 0; i < fields.size(); ++i) {
            const FieldInfo& info = fields[i].info;
            if (!info.hidden && info.more == more && belongs(info.name, lab_.params()))
                draw_field(c, fields[i], default_fields[i]);
        }
    };
    draw(false);
    ui::disclosure(c, "window.more", "More: overflow, outliers, loss scale", more_open_);
    if (more_open_) draw(true);
    ImGui::Dummy({0, c.px(12)});
    draw_table(c, width);
}

// Both formats at this margin.
void WindowView::draw_table(Context& c, float width) {
    const Outcome& o = lab_.outcome();
    const int margin = lab_.params().source == "manual" ? 0 : o.spec.margin;
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
