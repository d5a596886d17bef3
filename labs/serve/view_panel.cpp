// The Explore tab of L17.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "labs/serve/view.h"
#include "labs/table/view_share.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::serve {
using ui::Context;

std::string ServeView::more_words() const {
    return lab_.shows("draft")     ? "compare, target"
           : lab_.shows("rollout") ? "compare, answers"
           : lab_.shows("qat")     ? "steps"
                                   : "calibration rows, damping, order";
}

bool ServeView::draw_own(Context& c, const table::Row& row, const Field& default_field) {
    const std::string& name = row.field.info.name;
    if (!row.why_not.empty()) {  // its tooltip says why
        const Rect line = ui::next_area(c, 24);
        const float y = (line.y0 + line.y1) / 2;
        const Color ink{Role::muted, Tone::ink, 0.6F};
        ui::text_mid(c, {line.x0, y}, row.field.info.label, ink, kSans13);
        ui::text_mid(c, {line.x1, y}, "no effect now", ink, kSans13, Anchor::right);
        ui::advance(line);
        ui::tooltip(c, row.field.info.label, row.why_not);
        return true;
    }
    if (name == "amax" || name == "k_factor")
        draw_powers(c, row.field, default_field);
    else if (name == "lower" || name == "draft_lower")
        draw_switch(c, row.field);
    else
        return false;
    return true;
}

void ServeView::draw_switch(Context& c, const Field& field) {
    ui::text(c, field.info.label, Role::muted, kSans13);
    std::vector<std::string> labels;
    for (const Choice& choice : field.choices) labels.push_back(choice.label);
    const auto now = std::ranges::find(field.choices, field_text(field), &Choice::id);
    int selected = static_cast<int>(now - field.choices.begin());
    if (ui::segmented(c, field.info.name, labels, selected))
        set_field(field, field.choices.at(static_cast<std::size_t>(selected)).id);
    ui::tooltip(c, field.info.label, field.info.help);
}

// The mouse rounds to powers of two, an arrow key goes to the next.
void ServeView::draw_powers(Context& c, const Field& field, const Field& default_field) {
    const double before = std::stod(field_text(field));
    double value = before;
    const bool changed =
        ui::slider(c, field.info.name, field.info.label, field.info.te_name, value, field.min, field.max,
                   {.logarithmic = true,
                    .format = before >= 1 ? "×{0:g}" : fmt::format("÷{:g}", 1 / before),
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
    if (lab_.shows("methods")) {
        draw_methods_rows(c);
        table::draw_share(c, lab_, "serve.share", "All schemes", lab_->stems);
    } else if (lab_.shows("kv")) {
        draw_kv_rows(c);
        table::draw_share(c, lab_, "serve.share", "All caches and sizes", lab_->kv);
    } else if (lab_.shows("draft")) {
        DraftStage::draw_rows(c, lab_);
        table::draw_share(c, lab_, "serve.share", "All drafts", lab_->drafts);
    } else if (lab_.shows("rollout")) {
        RolloutStage::draw_rows(c, lab_);
        table::draw_share(c, lab_, "serve.share", "All draws", lab_->rollouts);
    } else if (lab_.shows("speed")) {
        return SpeedStage::draw_rows(c, lab_);
    } else {
        QatStage::draw_rows(c, lab_);
        table::draw_share(c, lab_, "serve.share", "All trainings", lab_->qat);
    }
    ui::wrapped(c,
                "Emulated on the CPU: no time is measured. These networks have 19 000 to 220 000 weights; "
                "which method is "
                "best need not hold for large ones.");
}

}  // namespace fp8lab::serve
