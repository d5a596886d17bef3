// A line of text that is typed: shown wrapped, edited in place.
#include <imgui.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <utility>

#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab::ui {
namespace {

constexpr float kTextPad = 8, kLine = 20;

// What is typed replaces `value` on Enter and when the field is left; Escape keeps what was there.
bool edit_line(Context& context, const std::string& name, std::string& value, Rect area, Font font) {
    auto& typing = context.typing;
    ImGui::PushFont(context.font(font));
    const float pad = std::max(0.0F, (area.height() - ImGui::GetFontSize()) / 2);
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {context.px(kTextPad), pad});
    ImGui::SetCursorScreenPos({area.x0, area.y0});
    ImGui::SetNextItemWidth(area.width());
    if (std::exchange(typing.just_opened, false)) ImGui::SetKeyboardFocusHere();
    const bool entered =
        ImGui::InputText(("##" + name).c_str(), &typing.text, ImGuiInputTextFlags_EnterReturnsTrue);
    const bool left = ImGui::IsItemDeactivated();
    const bool given_up = ImGui::IsKeyPressed(ImGui::GetKeyIndex(ImGuiKey_Escape));
    ImGui::PopStyleVar();
    ImGui::PopFont();
    if (!entered && !left) return false;
    const bool changed = !given_up && typing.text != value;
    if (changed) value = typing.text;
    typing = {};
    return changed;
}

}  // namespace

bool text_input(Context& context, std::string_view name, std::string& value, std::string_view placeholder,
                Font font) {
    const std::string id(name);
    Rect area = next_area(context, 32);
    if (context.typing.name == id) {
        const bool changed = edit_line(context, id, value, area, font);
        probe(context, name, area);
        advance(area);
        return changed;
    }
    const std::string_view words = value.empty() ? placeholder : std::string_view(value);
    const auto lines = wrap_lines(context, words, font, area.width() - 2 * context.px(kTextPad));
    area.y1 = area.y0 + context.px(12 + kLine * static_cast<float>(std::max<std::size_t>(lines.size(), 1)));
    const Press hit = press(context, name, area, 4);
    fill_rect(context, area, {Role::surface}, 4);
    stroke_rect(context, area, {hit.hovered ? Role::axis : Role::line}, 4);
    float y = area.y0 + context.px(6 + kLine / 2);
    for (const auto line : lines) {
        text_mid(context, {area.x0 + context.px(kTextPad), y}, line,
                 {value.empty() ? Role::muted : Role::text}, font);
        y += context.px(kLine);
    }
    advance(area);
    if (hit.clicked) context.typing = {id, value, true};
    return false;
}

}  // namespace fp8lab::ui
