// Table rows and tooltips.
#include <algorithm>
#include <cmath>
#include <string>

#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab::ui {

void table_row(Context& context, std::span<const Cell> cells, std::span<const float> columns_px) {
    const Rect row = next_area(context, 32);
    float width = 0;
    for (const float column : columns_px) width += column;
    hline(context, row.x0, row.x0 + width, row.y0, {Role::line});
    float left = row.x0;
    const float y = (row.y0 + row.y1) / 2;
    for (std::size_t i = 0; i < std::min(cells.size(), columns_px.size()); ++i) {
        const Cell& cell = cells[i];
        const float right = left + columns_px[i];
        const float x = cell.anchor == Anchor::left    ? left
                        : cell.anchor == Anchor::right ? right
                                                       : (left + right) / 2;
        const Face face = cell.mono ? (cell.strong ? Face::mono_bold : Face::mono)
                                    : (cell.strong ? Face::sans_bold : Face::sans);
        text_mid(context, {x, y}, cell.text, {cell.role, cell.tone}, {face, 13}, cell.anchor);
        if (cell.value) {
            const float reach = text_width(context, cell.text, {face, 13}) + context.px(6);
            copyable(context, "value." + cells.front().text + "." + std::to_string(i),
                     {right - reach, y - context.px(12), right, y + context.px(12)}, *cell.value);
        }
        left = right;
    }
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});  // rows touch: the hairline is the gap
    advance({row.x0, row.y0, row.x0 + width, row.y1});
    ImGui::PopStyleVar();
}

void table_end(Context& context, std::span<const float> columns_px) {
    const Rect area = next_area(context, 4);
    float width = 0;
    for (const float column : columns_px) width += column;
    hline(context, area.x0, area.x0 + width, area.y0, {Role::line});
    advance(area);
}

void tooltip(Context& context, std::string_view title, std::string_view body) {
    constexpr double kDelay_s = 0.4;
    constexpr float kWidth = 280;
    if (!ImGui::IsItemHovered()) return;
    const ImVec2 lo = ImGui::GetItemRectMin();
    const ImVec2 hi = ImGui::GetItemRectMax();
    auto& hover = context.hover;
    if (hover.rect.x0 != lo.x || hover.rect.y0 != lo.y || hover.rect.x1 != hi.x)
        hover = {{lo.x, lo.y, hi.x, hi.y}, ImGui::GetTime()};
    if (ImGui::GetTime() - hover.since < kDelay_s) {
        context.wants_redraw = true;
        return;
    }
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {context.px(12), context.px(12)});
    ImGui::PushStyleVar(ImGuiStyleVar_PopupRounding, context.px(4));
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
    ImGui::PushStyleColor(ImGuiCol_Border, context.color(Role::axis));
    ImGui::SetNextWindowSize({context.px(kWidth + 24), 0});
    ImGui::BeginTooltip();
    text(context, title, Role::text, {Face::sans_bold, 13});
    wrapped(context, body, Role::muted, {Face::sans, 13});
    ImGui::EndTooltip();
    ImGui::PopStyleColor();
    ImGui::PopStyleVar(3);
}

}  // namespace fp8lab::ui
