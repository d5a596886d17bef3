// A line of text that is typed: shown wrapped, edited in place.
#include <imgui.h>
#include <imgui_stdlib.h>

#include <algorithm>

#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab::ui {
namespace {

constexpr float kTextPad = 8, kLine = 20;

// ImGui selects all of a field that is opened by code, in 1.86 the first time only.
int place_caret(ImGuiInputTextCallbackData* data) {
    bool& placed = *static_cast<bool*>(data->UserData);
    if (!placed) data->CursorPos = data->SelectionStart = data->SelectionEnd = data->BufTextLen;
    placed = true;
    return 0;
}

// What is typed replaces `value` on Enter, on Tab and when the field is left; Escape keeps what was there.
bool edit_line(Context& context, const std::string& name, std::string& value, Rect area, Font font) {
    auto& typing = context.typing;
    ImGui::PushFont(context.font(font));
    const float pad = std::max(0.0F, (area.height() - ImGui::GetFontSize()) / 2);
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {context.px(kTextPad), pad});
    ImGui::SetCursorScreenPos({area.x0, area.y0});
    ImGui::SetNextItemWidth(area.width());
    if (typing.wants_focus) focus_text_field(("##" + name).c_str());
    const auto flags =
        ImGuiInputTextFlags_EnterReturnsTrue |
        (typing.select ? ImGuiInputTextFlags_AutoSelectAll : ImGuiInputTextFlags_CallbackAlways);
    const bool entered = ImGui::InputText(("##" + name).c_str(), &typing.text, flags,
                                          typing.select ? nullptr : place_caret, &typing.caret_placed);
    got_focus(context);
    const bool left = ImGui::IsItemDeactivated();
    const bool given_up = pressed(Key::escape), tabbed = tab_leaves(context, name);
    ImGui::PopStyleVar();
    ImGui::PopFont();
    if (!entered && !left && !tabbed) return false;
    const bool changed = !given_up && typing.text != value;
    if (changed) value = typing.text;
    typing = {};
    return changed;
}

}  // namespace

void got_focus(Context& context) {
    bool& wanted = context.typing.wants_focus;
    context.wants_redraw |= wanted;  // also once it has it: ImGui says a frame later that text is typed
    wanted = wanted && !ImGui::IsItemActive();
    context.opens_text |= wanted;
}

bool tab_leaves(Context& context, std::string_view name) {
    Focus& focus = context.focus;
    if (focus.reach == Focus::Reach::covered) return false;
    focus.id = ImGui::GetID(std::string(name).c_str());
    focus.order.push_back(focus.id);
    const ImGuiIO& io = ImGui::GetIO();
    if (!pressed(Key::tab, false) || io.KeyCtrl) return false;
    focus.leave = io.KeyShift ? -1 : 1;
    context.wants_redraw = true;
    return true;
}

bool text_input(Context& context, std::string_view name, std::string& value, std::string_view placeholder,
                Font font, std::size_t rows) {
    const std::string id(name);
    const bool edited = context.typing.name == id;
    const std::string_view text = edited ? context.typing.text : value;
    const std::string_view words = text.empty() ? placeholder : text;
    Rect area = next_area(context, 32);
    const auto lines = wrap_lines(context, words, font, area.width() - 2 * context.px(kTextPad));
    area.y1 = area.y0 + context.px(12 + kLine * static_cast<float>(std::max(lines.size(), rows)));
    if (edited) {
        const bool changed = edit_line(context, id, value, area, font);
        probe(context, name, area);
        advance(area);
        return changed;
    }
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
    // As on any desktop: a field that the keyboard comes to is selected, and a text of several lines is not.
    if (hit.clicked || (hit.focused && context.focus.into)) {
        context.typing = {.name = id, .text = value, .wants_focus = true, .select = hit.focused && rows == 1};
        context.opens_text = true;
    }
    return false;
}

}  // namespace fp8lab::ui
