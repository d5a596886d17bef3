// The table of tensors or kinds.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "labs/ui/draw.h"
#include "labs/ui/fit.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"
#include "labs/workbench/view.h"

namespace fp8lab::workbench {
namespace {

using ui::Context;

constexpr float kRowHeight = 25, kTwoLines = 40, kNameWidth = 130;  // at least, for names

std::string size_text(float value) { return value == 0 ? "0" : screen_number(static_cast<double>(value), 3); }

}  // namespace

std::vector<WorkbenchView::Column> WorkbenchView::columns_in(const Context& c, Rect area) const {
    const auto recipes = lab_->columns();
    const bool wide = area.width() >= c.px(680);
    std::vector<Column> out;
    float right = area.x1;
    for (std::size_t i = recipes.size(); i-- > 0;) {
        const ScanRecipe& recipe = lab_->scanned().recipes[recipes[i]];
        out.push_back({recipe.id, recipe.short_label, "underflow", right, static_cast<int>(recipes[i])});
        right -= c.px(i == 0 ? 70 : wide ? 62 : 54);
    }
    if (lab_->has_odd_scales && !lab_->params.covered) {
        float widest = c.px(40);
        for (const TableRow& row : lab_->list)
            widest = std::max(widest, ui::text_width(c, row.scale_words(), kSans13));
        out.push_back({"scales", "scales", "scale", right});
        right -= std::min(widest, c.px(wide ? 112 : 80)) + c.px(14);
    }
    if (lab_->shows_not_finite()) {
        out.push_back({"not_finite", "NaN, Inf", "special-values", right});
        right -= c.px(74);
    }
    for (const auto& [id, head, term, width] : {std::tuple{"binades", "binades", "binade", 66.0F},
                                                {"least", "least", "", 74.0F},
                                                {"amax", "amax", "amax", 66.0F},
                                                {"shape", "shape", "", 72.0F}}) {
        const std::string_view name = id;
        if (!wide && (name == "shape" || name == "least")) continue;
        if (right - c.px(width + kNameWidth) < area.x0) continue;
        out.push_back({std::string(id), head, term, right});
        right -= c.px(width);
    }
    out.push_back({"name",
                   !lab_->params.fold ? "tensor"
                   : wide             ? "kind, worst of its layers"
                                      : "kind",
                   "", right});
    std::ranges::reverse(out);
    return out;
}

// A click sorts by the column; a second one reverses the order.
void WorkbenchView::draw_heads(Context& c, const std::vector<Column>& columns, Rect area, float y) {
    const Params& p = lab_->params;
    const std::string order = p.order == "underflow" ? "current" : p.order;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const Column& column = columns[i];
        const bool name = column.id == "name", sorts = column.id != "shape" && column.id != "scales",
                   by = order == column.id;
        const float width = ui::text_width(c, column.head, by ? kBold13 : kSans13);
        const float left = name ? area.x0 : column.right - width;
        const Rect hit{left - c.px(4), y - c.px(11), left + width + c.px(4), y + c.px(11)};
        ui::text_mid(c, {left, y}, column.head, {by ? Role::text : Role::muted}, by ? kBold13 : kSans13);
        if (by)
            ui::chevron(c, {left - c.px(9), y}, p.ascending ? ui::Direction::up : ui::Direction::down,
                        {Role::text});
        if (!sorts) continue;
        const ui::Press press = ui::press(c, "workbench.head." + column.id, hit, 4);
        if (press.hovered) ui::hline(c, left, left + width, y + c.px(9), {Role::muted});
        if (!press.clicked) continue;
        set(fmt::format("ascending={}", by && !p.ascending));
        set("order=" + column.id);
    }
}

namespace {

struct Cell {
    std::string words;
    Color ink{Role::text};
    Font font = kMono13;
};

Cell underflow_cell(const std::vector<double>& underflow_pct, std::size_t recipe, double limit) {
    if (recipe >= underflow_pct.size()) return {};
    const double pct = underflow_pct[recipe];
    return {percent_text(pct), {pct > limit ? Role::text : Role::muted}, pct > limit ? kMonoBold13 : kMono13};
}

std::string shape_words(std::string shape) {
    std::string out;
    for (const char each : shape)
        if (each == 'x')
            out += "\u00d7";
        else if (each != ' ')
            out += each;
    return out;
}

}  // namespace

float WorkbenchView::row_height() const {
    return lab_->scanned().before || lab_->tells_faults() ? kTwoLines : kRowHeight;
}

void WorkbenchView::draw_row(Context& c, const std::vector<Column>& columns, const TableRow& row, Rect line,
                             bool selected) {
    const ScanRow& worst = lab_->scanned().rows[row.worst];
    const bool compared = lab_->scanned().before != nullptr,
               known = row.summarised && worst.not_scanned.empty();
    const bool two_lines = compared || (lab_->tells_faults() && lab_->verified_of(row) != nullptr);
    const float middle = (line.y0 + line.y1) / 2, y = two_lines ? line.y0 + c.px(12) : middle,
                below = line.y0 + c.px(28);
    const double limit = lab_->params.max_underflow;
    const TableBefore& before = row.before;
    const bool has_before = before.change == "same" && known;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const Column& column = columns[i];
        if (column.id == "name") {
            const Font font = selected ? kMonoBold13 : kMono13;
            ui::text_mid(c, {line.x0, y}, ui::cut_middle(c, row.name, font, column.right - line.x0 - c.px(8)),
                         {Role::text}, font);
            if (compared && worst.not_scanned.empty())
                ui::text_mid(c, {line.x0, below}, has_before ? "before" : before.change, {Role::muted},
                             kSans13);
            continue;
        }
        Cell now, old;
        if (column.recipe >= 0) {
            const auto recipe = static_cast<std::size_t>(column.recipe);
            now = underflow_cell(row.underflow_pct, recipe, limit);
            old = underflow_cell(before.underflow_pct, recipe, limit);
        } else if (column.id == "scales") {
            const float left = i == 0 ? line.x0 : columns[i - 1].right + c.px(14);
            now = {ui::cut_end(c, row.scale_words(), kSans13, column.right - left),
                   {Role::sat, Tone::ink},
                   kSans13};
        } else if (column.id == "shape") {
            now = {shape_words(row.shape), {Role::muted}};
        } else if (known) {
            if (column.id == "amax") now.words = size_text(row.amax), old.words = size_text(before.amax);
            if (column.id == "least") now.words = size_text(row.least), old.words = size_text(before.least);
            if (column.id == "binades")
                now.words = fmt::format("{:.1f}", row.binades),
                old.words = fmt::format("{:.1f}", before.binades);
            if (column.id == "not_finite") {
                now.words = group_thousands(row.not_finite);
                now.ink = {row.not_finite > 0 ? Role::sat : Role::muted, Tone::ink};
            }
        }
        ui::text_mid(c, {column.right, y}, now.words, now.ink, now.font, Anchor::right);
        if (has_before)
            ui::text_mid(c, {column.right, below}, old.words, {Role::muted}, kMono13, Anchor::right);
    }
    draw_row_verified(c, row, line);
    if (!worst.not_scanned.empty()) {
        const Column& last = columns.size() > 1 && columns[1].id == "shape" ? columns[1] : columns[0];
        const float room = columns.size() > 1 ? line.x1 - last.right - c.px(12) : line.width();
        ui::text_mid(c, {line.x1, middle},
                     ui::cut_end(c, row.dtype + ", " + worst.not_scanned, kSans13, room), {Role::muted},
                     kSans13, Anchor::right);
    }
}

// Against an original: the second line of a row.
void WorkbenchView::draw_row_verified(Context& c, const TableRow& row, Rect line) {
    const Verified* const found = lab_->verified_of(row);
    if (!found || !lab_->tells_faults()) return;
    const bool fault = found->is_fault();
    ui::text_mid(c, {line.x0, line.y0 + c.px(28)}, ui::cut_end(c, found->sentence(), kSans13, line.width()),
                 {fault ? Role::warning : Role::muted}, kSans13);
}

// A tensor that only the second file has.
void WorkbenchView::draw_missing(Context& c, Rect line, std::size_t index) {
    const float y = (line.y0 + line.y1) / 2;
    ui::hline(c, line.x0, line.x1, line.y0, {Role::line});
    const char* const words = lab_->is_verified() ? "only in the original" : "only in the second file";
    const float room = line.width() - ui::text_width(c, words, kSans13) - c.px(16);
    ui::text_mid(c, {line.x0, y}, ui::cut_middle(c, lab_->missing()[index], kMono13, room), {Role::muted},
                 kMono13);
    ui::text_mid(c, {line.x1, y}, words, {Role::muted}, kSans13, Anchor::right);
}

float WorkbenchView::draw_filter(Context& c, Rect area) {
    constexpr float kWidth = 220;
    if (c.typing.name != "workbench.filter" && lab_->params.filter.empty()) return 0;
    const ImVec2 cursor = ImGui::GetCursorScreenPos();
    ImGui::SetCursorScreenPos({area.x1 - c.px(kWidth), area.y0 - c.px(6)});
    ImGui::BeginChild("workbench.filter.box", {c.px(kWidth), c.px(34)}, false, ImGuiWindowFlags_NoScrollbar);
    std::string words = lab_->params.filter;
    if (ui::text_input(c, "workbench.filter", words, "a part of the name", kMono13)) set("filter=" + words);
    ImGui::EndChild();
    ImGui::SetCursorScreenPos(cursor);
    return c.px(kWidth + 16);
}

void WorkbenchView::draw_foot(Context& c, const std::vector<Column>& columns, Rect line) {
    const float y = (line.y0 + line.y1) / 2;
    ui::hline(c, line.x0, line.x1, line.y0, {Role::text});
    ui::hline(c, line.x0, line.x1, line.y1, {Role::text});
    const std::string words = fmt::format("tensors of {} that lose more than {} %", lab_->counts.done,
                                          screen_number(lab_->params.max_underflow));
    float first = line.x1;
    for (const Column& column : columns) {
        if (column.recipe < 0) continue;
        first = std::min(first, column.right - c.px(50));
        ui::text_mid(c, {column.right, y},
                     std::to_string(lab_->counts.losing[static_cast<std::size_t>(column.recipe)]),
                     {Role::text}, kMonoBold13, Anchor::right);
    }
    ui::text_mid(c, {line.x0, y}, ui::cut_end(c, words, kBold13, first - line.x0), {Role::text}, kBold13);
}

float WorkbenchView::draw_table(Context& c, Rect area, std::size_t rows) {
    const float filter = draw_filter(c, area);
    float y = ui::heading(c, lab_->title(), {area.x0, area.y0, area.x1 - filter, area.y1}) + c.px(4);
    const auto columns = columns_in(c, area);
    draw_heads(c, columns, area, y + c.px(11));
    y += c.px(24);
    const float height = c.px(row_height()), bleed = c.px(7);
    const auto& table = lab_->list;
    rows_shown_ = static_cast<float>(rows);
    const float shown = height * rows_shown_;
    ImGui::SetCursorScreenPos({area.x0 - bleed, y});
    ImGui::BeginChild("workbench.rows", {area.width() + bleed + c.px(16), shown}, false,
                      ImGuiWindowFlags_NoScrollbar);
    const ImVec2 origin = ImGui::GetCursorScreenPos();
    const auto selected = lab_->selected_row();
    to_selected_ = to_selected_ || shown_tensor_ != lab_->params.tensor;
    if (to_selected_ && selected) {
        shown_tensor_ = lab_->params.tensor;
        const float top = height * static_cast<float>(*selected);
        if (top < ImGui::GetScrollY()) ImGui::SetScrollY(top);
        if (top + height > ImGui::GetScrollY() + shown) ImGui::SetScrollY(top + height - shown);
        to_selected_ = false;
    }
    const auto first = static_cast<std::size_t>(std::max(0.0F, std::floor(ImGui::GetScrollY() / height)));
    for (std::size_t i = first; i < std::min(table.size(), first + rows + 1); ++i) {
        const float top = origin.y + height * static_cast<float>(i);
        const Rect line{area.x0, top, area.x1, top + height};
        const Rect whole{line.x0 - bleed, line.y0, line.x1 + bleed, line.y1};
        const bool chosen = selected == i;
        if (!chosen) ui::hline(c, line.x0, line.x1, line.y0, {Role::line});
        if (ui::press_row(c, fmt::format("workbench.row.{}", i), whole, chosen)) {
            choose(i);
            if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left) && lab_->params.fold) unfold(i);
        }
        draw_row(c, columns, table[i], line, chosen);
    }
    const std::size_t all = table.size() + lab_->missing().size();
    for (std::size_t i = std::max(first, table.size()); i < std::min(all, first + rows + 1); ++i) {
        const float top = origin.y + height * static_cast<float>(i);
        draw_missing(c, {area.x0, top, area.x1, top + height}, i - table.size());
    }
    ui::advance({origin.x, origin.y, origin.x + 1, origin.y + height * static_cast<float>(all)});
    ui::scroll_thumbs(c);
    ImGui::EndChild();
    y += shown;
    const Rect foot{area.x0, y, area.x1, y + c.px(26)};
    draw_foot(c, columns, foot);
    return foot.y1;
}

}  // namespace fp8lab::workbench
