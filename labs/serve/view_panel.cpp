// The Explore tab of L17.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "labs/serve/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::serve {
using ui::Context;

std::string ServeView::more_words() const {
    return lab_.shows("draft")     ? "target"
           : lab_.shows("rollout") ? "answers"
           : lab_.shows("qat")     ? "steps"
                                   : "calibration rows, damping";
}

bool ServeView::draw_own(Context& c, const table::Row& row, const Field& default_field) {
    const std::string& name = row.field.info.name;
    if ((name != "amax" && name != "k_factor") || !row.why_not.empty()) return false;
    draw_powers(c, row.field, default_field);
    return true;
}

// The mouse rounds to powers of two, an arrow key goes to the next.
void ServeView::draw_powers(Context& c, const Field& field, const Field& default_field) {
    const double before = std::stod(field_text(field));
    double value = before;
    const bool changed =
        ui::slider(c, field.info.name, field.info.label, field.info.te_name, value, field.min, field.max,
                   {.logarithmic = true,
                    .format = before >= 1 ? "×{0:g}" : "{0:g}",
                    .default_value = std::stod(field_text(default_field))});
    ui::tooltip(c, field.info.label, field.info.help);
    if (!changed) return;
    double at = std::round(std::log2(value));
    const bool small = std::fabs(std::log2(value / before)) < 0.3;
    if (small && !ImGui::IsMouseDown(ImGuiMouseButton_Left))
        at = std::round(std::log2(before)) + (value > before ? 1 : -1);
    set(fmt::format("{}={}", field.info.name,
                    std::exp2(std::clamp(at, std::log2(field.min), std::log2(field.max)))));
}

void ServeView::draw_below(Context& c, float) {
    ui::divider(c);
    if (lab_.shows("methods")) draw_methods_rows(c);
    ui::wrapped(c,
                "Emulated on the CPU: no time is measured. What holds for networks of 19 000 to 200 000 "
                "weights need not "
                "hold for large ones.");
}

}  // namespace fp8lab::serve
