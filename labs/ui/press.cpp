#include <algorithm>
#include <cmath>

#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab::ui {

Rect next_area(Context& context, float height) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float x = std::round(at.x);
    const float y = std::round(at.y);
    return {x, y, std::round(at.x + ImGui::GetContentRegionAvail().x), y + std::round(context.px(height))};
}

void advance(Rect area) {
    ImGui::SetCursorScreenPos({area.x0, area.y0});
    ImGui::Dummy({area.width(), area.height()});
}

Press press(Context& context, std::string_view name, Rect area, float radius) {
    const std::string label(name);
    const ImVec2 cursor = ImGui::GetCursorScreenPos();
    ImGui::SetCursorScreenPos({area.x0, area.y0});
    Press result;
    result.clicked =
        ImGui::InvisibleButton(label.c_str(), {std::max(1.0F, area.width()), std::max(1.0F, area.height())});
    result.held = ImGui::IsItemActive();
    result.hovered = ImGui::IsItemHovered();
    ImGui::SetCursorScreenPos(cursor);
    probe(context, name, area);

    Focus& focus = context.focus;
    if (focus.reach == Focus::Reach::covered) return {};
    const ImGuiID id = ImGui::GetID(label.c_str());
    focus.order.push_back(id);
    if (result.held) focus.id = id;
    if (!focus.wanted.empty() && focus.wanted == name) {
        focus.id = id;
        focus.visible = focus.moved = true;
        focus.wanted.clear();
    }
    result.focused = focus.visible && focus.id == id && (focus.modal == 0 || focus.modal == id);
    if (result.focused) {
        focus_ring(context, area, radius);
        const bool in_view = ImGui::IsRectVisible({area.x0, area.y0}, {area.x1, area.y1});
        if (focus.moved && !in_view) ImGui::SetScrollFromPosY(area.y0 - ImGui::GetWindowPos().y);
        focus.name = name;
        if (focus.reach == Focus::Reach::found) return {};
        result.clicked |= key_pressed(Key::enter) || key_pressed(Key::space);
    }
    return result;
}

}  // namespace fp8lab::ui
