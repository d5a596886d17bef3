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

// Controls of another scenario, rule or tensor are not shown.
bool belongs(std::string_view field, const Params& params) {
    const ScenarioSpec& scenario = params.scenario;
    const std::string& algo = params.a.algo;
    if (field == "growth") return uses_growth(scenario.kind);
    if (field == "jump") return uses_jump(scenario.kind);
    if (field == "jump_at") return uses_jump_at(scenario.kind);
    if (field == "series") return scenario.kind == "file";
    if (field == "ema" || field == "percentile") return algo == field;
    if (field == "static_scale") return algo == "static";
    if (field == "history") return algo == "max" || algo == "percentile" || algo == "most_recent";
    if (field == "margin") return algo != "static";
    if (field == "interval") return algo == "max" || algo == "most_recent";
    if (field == "file") return true;
    if (scenario.kind == "rows" && (field == "tensor" || field == "sigma" || field == "seed")) return false;
    if (field == "tensor" || field == "sigma" || field == "seed") return has_effect(scenario.tensor, field);
    return true;
}

bool edit_margin(Context& c, const Field& field) {
    if (ui::withheld(c, field)) return false;
    int& value = **std::get_if<int*>(&field.value);
    double exponent = value;
    static constexpr std::array kTicks = {0.0, 2.0, 4.0, 6.0, 8.0};
    if (!ui::slider(c, field.info.name, field.info.label, field.info.te_name, exponent, field.min, field.max,
                    {.step = 1, .format = "2^{0:.0f} = ×{1:g}", .ticks = kTicks, .default_value = 0.0}))
        return false;
    value = static_cast<int>(std::lround(exponent));
    return true;
}

bool edit_history(Context& c, const Field& field) {
    if (ui::withheld(c, field)) return false;
    int& value = **std::get_if<int*>(&field.value);
    double steps = value;
    static constexpr std::array kTicks = {1.0, 4.0, 16.0, 64.0, 256.0, 1024.0};
    if (!ui::slider(
            c, field.info.name, field.info.label, field.info.te_name, steps, field.min, field.max,
            {.logarithmic = true, .step = 1, .ticks = kTicks, .default_value = MachineSpec{}.history}))
        return false;
    value = static_cast<int>(std::lround(steps));
    return true;
}

void tip(Context& c, const Field& field) { ui::tooltip(c, field.info.label, field.info.help); }

}  // namespace

void DelayedView::explore(Context& c, float width) {
    const std::vector<Field> fields = lab_.fields(), default_fields = lab_.defaults();
    const auto draw = [&](bool more) {
        for (std::size_t i = 0; i < fields.size(); ++i) {
            const FieldInfo& info = fields[i].info;
            if (info.hidden || info.more != more || !belongs(info.name, lab_.params())) continue;
            if (info.name == "margin")
                edit_margin(c, fields[i]), tip(c, fields[i]);
            else if (info.name == "history")
                edit_history(c, fields[i]), tip(c, fields[i]);
            else
                ui::edit(c, fields[i], &default_fields[i]);
        }
    };
    draw(false);
    ui::disclosure(c, "delayed.more", "More: interval, tensor, seed", more_open_);
    if (more_open_) draw(true);
    ui::divider(c);
    draw_comparison(c, width);
}

void DelayedView::draw_comparison(Context& c, float width) {
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
    const Run &a = lab_.a(), &b = lab_.b();
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
    row("Saturated steps", a.saturated_steps(), b.saturated_steps(), fmt::format(" of {}", lab_.steps()),
        true, false);
    row("Worst SQNR, dB", a.worst_sqnr_db(), b.worst_sqnr_db(), "", false, true);
    row("Mean underflow, %", a.mean_underflow_pct(), b.mean_underflow_pct(), "", false, false);
    ui::table_end(c, columns);
    const bool pinned = lab_.params().other == "pinned";
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
