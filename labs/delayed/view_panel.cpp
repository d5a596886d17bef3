// The Explore tab of L5: scenario and machine, then A against B.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/delayed/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab::delayed {

namespace {

using ui::Context;

void edit_margin(Context& c, const Field& field) {
    int& value = **std::get_if<int*>(&field.value);
    double exponent = value;
    static constexpr std::array kTicks = {0.0, 2.0, 4.0, 6.0, 8.0};
    if (!ui::slider(c, field.info.name, field.info.label, field.info.te_name, exponent, field.min, field.max,
                    {.step = 1, .format = "2^{0:.0f} = ×{1:g}", .ticks = kTicks, .default_value = 0.0}))
        return;
    value = static_cast<int>(std::lround(exponent));
}

void edit_history(Context& c, const Field& field) {
    int& value = **std::get_if<int*>(&field.value);
    double steps = value;
    static constexpr std::array kTicks = {1.0, 4.0, 16.0, 64.0, 256.0, 1024.0};
    if (!ui::slider(
            c, field.info.name, field.info.label, field.info.te_name, steps, field.min, field.max,
            {.logarithmic = true, .step = 1, .ticks = kTicks, .default_value = MachineSpec{}.history}))
        return;
    value = static_cast<int>(std::lround(steps));
}

}  // namespace

bool DelayedView::draw_own(Context& c, const table::Row& row, const Field&) {
    const FieldInfo& info = row.field.info;
    if (info.name != "margin" && info.name != "history") return false;
    info.name == "margin" ? edit_margin(c, row.field) : edit_history(c, row.field);
    ui::tooltip(c, info.label, info.help);
    return true;
}

void DelayedView::draw_below(Context& c, float width) {
    ui::divider(c);
    const std::vector<float> columns = {width * 0.44F, width * 0.28F, width * 0.28F};
    const auto head = [&](std::string a, std::string b, std::string label, bool strong) {
        const Rect row = ui::next_area(c, strong ? 24 : 22);
        const float y = (row.y0 + row.y1) / 2;
        const Font font{strong ? Face::sans_bold : Face::sans, strong ? 15.0F : 13.0F};
        const Color ink{strong ? Role::text : Role::muted};
        ui::text_mid(c, {row.x0, y}, label, ink, font);
        ui::text_mid(c, {row.x0 + columns[0] + columns[1], y}, a, ink, font, Anchor::right);
        ui::text_mid(c, {row.x0 + width, y}, b, ink, font, Anchor::right);
        ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
        ui::advance(row);
        ImGui::PopStyleVar();
    };
    const Run &a = lab_->a(), &b = lab_->b();
    head("A", "B", "Same data", true);
    head(order_words(a.machine), order_words(b.machine), "order", false);
    const auto row = [&](const char* label, double x, double y, const std::string& suffix,
                         bool fault_if_positive, bool fault_if_low) {
        const auto cell = [&](double value) {
            const bool fault = (fault_if_positive && value > 0) || (fault_if_low && value < 10);
            return ui::Cell{.text = format_number(value, 3, true) + suffix,
                            .role = fault ? Role::sat : Role::text,
                            .strong = fault,
                            .value = value};
        };
        const std::array cells = {ui::Cell{.text = label, .mono = false, .anchor = Anchor::left}, cell(x),
                                  cell(y)};
        ui::table_row(c, cells, columns);
    };
    row("Saturated steps", a.saturated_steps(), b.saturated_steps(), fmt::format(" of {}", lab_->steps()),
        true, false);
    row("Worst SQNR, dB", a.worst_sqnr_db(), b.worst_sqnr_db(), "", false, true);
    row("Mean underflow, %", a.mean_underflow_pct(), b.mean_underflow_pct(), "", false, false);
    ui::table_end(c, columns);
    const bool pinned = lab_->params.other == "pinned";
    if (pinned)
        ui::wrapped(c, "B is pinned: " + rule_words(b.machine) + ".");
    else if (b.saturated_steps() == 0 && a.saturated_steps() > 0)
        ui::wrapped(c, "B’s scale is computed from this step’s amax: it is not delayed.");
    else
        ui::wrapped(c, "B is A in the order of a widely used FP8 notebook: amax first, then the cast.");
    const float half = (width / c.scale - 8) / 2;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    if (ui::button(c, "delayed.pin", "Pin A as B", {.width = half})) lab_.act("pin");
    ui::tooltip(c, "Pin A as B", "B keeps A’s settings as they are now. After that, change A.");
    ImGui::SetCursorScreenPos({at.x + c.px(half + 8), at.y});
    if (ui::button(c, "delayed.unpin", "Unpin",
                   {.disabled = !pinned, .why_disabled = "B is not pinned.", .width = half}))
        lab_.act("unpin");
}

}  // namespace fp8lab::delayed
