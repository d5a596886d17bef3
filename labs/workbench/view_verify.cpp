// What the comparison with an original adds: a switch below the second file, a line a row, a sentence above the histogram,
// numbers in the panel.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/ui/draw.h"
#include "labs/ui/fit.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"
#include "labs/workbench/view.h"

namespace fp8lab::workbench {

using ui::Context;

void WorkbenchView::draw_compare_as(Context& c) {
    if (lab_->params.compare.empty()) return;
    static const std::array<std::string, 2> kLabels = {"earlier state", "original"};
    int selected = lab_->params.compare_as == "original" ? 1 : 0;
    const std::vector<Field> fields = lab_.fields();
    const Field& field = *find_field(fields, "compare_as");
    if (ui::withheld(c, field)) return;
    if (ui::segmented(c, "compare_as", kLabels, selected))
        set(fmt::format("compare_as={}", selected == 1 ? "original" : "earlier"));
    ui::tooltip(c, "Which is", field.info.help);
}

void WorkbenchView::draw_row_verified(Context& c, const TableRow& row, Rect line) {
    const Verified* const found = lab_->verified_of(row);
    if (!found) return;
    const bool fault = found->is_fault();
    ui::text_mid(c, {line.x0, line.y0 + c.px(28)}, ui::cut_end(c, found->sentence(), kSans13, line.width()),
                 {fault ? Role::warning : Role::muted}, kSans13);
}

float WorkbenchView::draw_fault(Context& c, Rect area) {
    const std::string words = lab_->verified_words();
    if (words.empty()) return area.y0;
    const Verified* const found = lab_->verified();
    const bool fault = found && found->is_fault();
    const float indent = fault ? c.px(22) : 0;
    const Font font = fault ? kBold13 : kSans13;
    float y = area.y0;
    if (fault) ui::alert(c, {area.x0 + c.px(7), y + c.px(9)}, {Role::warning});
    for (const std::string_view line : ui::wrap_lines(c, words, font, area.width() - indent)) {
        ui::text_mid(c, {area.x0 + indent, y + c.px(9)}, line, {fault ? Role::warning : Role::muted}, font);
        y += ui::line_height(13) * c.scale;
    }
    const Rect all{area.x0, area.y0, area.x1, y};
    ui::probe(c, "workbench.fault", all, {}, words);
    return y + c.px(6);
}

void WorkbenchView::draw_verified(Context& c, float width) {
    const Verified* const found = lab_->verified();
    if (!found) return;
    const fp8lab::Diagnosis& diagnosis = *found->diagnosis;
    const std::vector<float> columns = {0.68F * width, 0.32F * width};
    const auto row = [&](const char* words, double value) {
        if (std::isnan(value)) return;
        ui::table_row(
            c,
            std::array{ui::Cell{.text = words, .mono = false, .anchor = Anchor::left},
                       ui::Cell{.text = std::isinf(value) ? "not finite" : screen_number(value, 3)}},
            columns);
    };
    ui::table_row(
        c,
        std::array{
            ui::Cell{.text = "Against the original", .mono = false, .strong = true, .anchor = Anchor::left},
            ui::Cell{.text = "relative L2", .role = Role::muted, .mono = false}},
        columns);
    row("this tensor", diagnosis.rel_l2);
    row("without the fault", diagnosis.mended);
    row("usual, at most", diagnosis.limit);
    ui::table_end(c, columns);
}

}  // namespace fp8lab::workbench
