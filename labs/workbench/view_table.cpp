// The table of tensors or kinds.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"
#include "labs/workbench/view.h"

namespace fp8lab::workbench {
namespace {

using ui::Context;

constexpr float kRowHeight = 25, kNameWidth = 130;  // at least, for names

// "E4M3, one scale" -> "E4M3": a head has room for one word.
std::string short_head(const ScanRecipe& recipe) {
    if (recipe.id == "unscaled") return "unscaled";
    if (recipe.id == "rowwise") return "row";
    if (recipe.id == "block128") return "1\u00d7128";
    if (recipe.id == "mxfp6-e3m2") return "E3M2";
    if (recipe.id == "mxfp6-e2m3") return "E2M3";
    return recipe.label.substr(0, recipe.label.find(','));
}

std::string size_text(float value) { return value == 0 ? "0" : screen_number(static_cast<double>(value), 3); }

}  // namespace

std::vector<WorkbenchView::Column> WorkbenchView::columns_in(const Context& c, Rect area) const {
    const auto recipes = lab_.columns();
    const bool wide = area.width() >= c.px(680);
    std::vector<Column> out;
    float right = area.x1;
    for (std::size_t i = recipes.size(); i-- > 0;) {
        const ScanRecipe& recipe = lab_.scanned().recipes[recipes[i]];
        out.push_back({recipe.id, short_head(recipe), "underflow", right, static_cast<int>(recipes[i])});
        right -= c.px(i == 0 ? 70 : wide ? 62 : 54);
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
                   !lab_.params().fold ? "tensor"
                   : wide              ? "kind, worst of its layers"
                                       : "kind",
                   "", right});
    std::ranges::reverse(out);
    return out;
}

// A click sorts by the column, and again turns the order.
void WorkbenchView::draw_heads(Context& c, const std::vector<Column>& columns, Rect area, float y) {
    const Params& p = lab_.params();
    const std::string order = p.order == "underflow" ? "current" : p.order;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const Column& column = columns[i];
        const bool name = column.id == "name", sorts = column.id != "shape", by = order == column.id;
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

void WorkbenchView::draw_row(Context& c, const std::vector<Column>& columns, const TableRow& row, Rect line,
                             bool selected) {
    const float y = (line.y0 + line.y1) / 2;
    const ScanRow& worst = lab_.scanned().rows[row.worst];
    const double limit = lab_.params().max_underflow;
    for (const Column& column : columns) {
        if (column.id == "name") {
            const Font font = selected ? kMonoBold13 : kMono13;
            ui::text_mid(c, {line.x0, y}, fitted(c, row.name, font, column.right - line.x0 - c.px(8)),
                         {Role::text}, font);
            continue;
        }
        std::string words;
        Color ink{Role::text};
        Font font = kMono13;
        if (column.recipe >= 0 && !row.underflow_pct.empty()) {
            const double pct = row.underflow_pct[static_cast<std::size_t>(column.recipe)];
            words = percent_text(pct);
            ink = {pct > limit ? Role::text : Role::muted};
            if (pct > limit) font = kMonoBold13;
        } else if (column.id == "shape") {
            words = row.shape;
            std::ranges::replace(words, 'x', '\x01');
            std::string cross;
            for (const char each : words)
                if (each == '\x01')
                    cross += "\u00d7";
                else if (each != ' ')
                    cross += each;
            words = cross;
            ink = {Role::muted};
        } else if (row.summarised && worst.not_scanned.empty()) {
            if (column.id == "amax") words = size_text(row.amax);
            if (column.id == "least") words = size_text(row.least);
            if (column.id == "binades") words = fmt::format("{:.1f}", row.binades);
        }
        ui::text_mid(c, {column.right, y}, words, ink, font, Anchor::right);
    }
    if (!worst.not_scanned.empty())
        ui::text_mid(c, {line.x1, y}, row.dtype + ", " + worst.not_scanned, {Role::muted}, kSans13,
                     Anchor::right);
}

void WorkbenchView::draw_foot(Context& c, const std::vector<Column>& columns, Rect line) {
    const float y = (line.y0 + line.y1) / 2;
    ui::hline(c, line.x0, line.x1, line.y0, {Role::text});
    ui::hline(c, line.x0, line.x1, line.y1, {Role::text});
    const std::string words = fmt::format("tensors of {} that lose more than {} %", lab_.counts().done,
                                          screen_number(lab_.params().max_underflow));
    float first = line.x1;
    for (const Column& column : columns) {
        if (column.recipe < 0) continue;
        first = std::min(first, column.right - c.px(50));
        ui::text_mid(c, {column.right, y},
                     std::to_string(lab_.counts().losing[static_cast<std::size_t>(column.recipe)]),
                     {Role::text}, kMonoBold13, Anchor::right);
    }
    ui::text_mid(c, {line.x0, y}, fitted(c, words, kBold13, first - line.x0), {Role::text}, kBold13);
}

float WorkbenchView::draw_table(Context& c, Rect area, std::size_t rows) {
    float y = draw_heading(c, lab_.title(), area) + c.px(4);
    const auto columns = columns_in(c, area);
    draw_heads(c, columns, area, y + c.px(11));
    y += c.px(24);
    const float height = c.px(kRowHeight), bleed = c.px(7);
    const auto& table = lab_.table();
    rows_shown_ = static_cast<float>(rows);
    const float shown = height * rows_shown_;
    ImGui::SetCursorScreenPos({area.x0 - bleed, y});
    ImGui::BeginChild("workbench.rows", {area.width() + bleed + c.px(16), shown}, false,
                      ImGuiWindowFlags_NoScrollbar);
    const ImVec2 origin = ImGui::GetCursorScreenPos();
    const auto selected = lab_.selected_row();
    to_selected_ = to_selected_ || shown_tensor_ != lab_.params().tensor;
    if (to_selected_ && selected) {
        shown_tensor_ = lab_.params().tensor;
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
        if (chosen) ui::fill_rect(c, whole, {Role::field}, 4);
        if (!chosen) ui::hline(c, line.x0, line.x1, line.y0, {Role::line});
        const ui::Press press = ui::press(c, fmt::format("workbench.row.{}", i), whole, 4);
        if (press.hovered) ui::stroke_rect(c, whole, {Role::axis}, 4);
        if (press.clicked) choose(i);
        if (press.clicked && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left) && lab_.params().fold)
            unfold(i);
        draw_row(c, columns, table[i], line, chosen);
    }
    ui::advance({origin.x, origin.y, origin.x + 1, origin.y + height * static_cast<float>(table.size())});
    ui::scroll_thumbs(c);
    ImGui::EndChild();
    y += shown;
    const Rect foot{area.x0, y, area.x1, y + c.px(26)};
    draw_foot(c, columns, foot);
    return foot.y1;
}

}  // namespace fp8lab::workbench
