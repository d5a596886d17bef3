// A number to copy: the menu behind it.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab::ui {
namespace {

constexpr float kCopyRow = 30, kWidth = 400, kWords = 84;
constexpr float kCopied_s = 1.2F;
constexpr std::array kKinds = {"rounded", "exact", "hex", "C", "NumPy"};

std::array<std::string, kKinds.size()> texts_of(double value) {
    NumberTexts texts = number_texts(value);
    return {std::move(texts.rounded), std::move(texts.exact), std::move(texts.hex), std::move(texts.c),
            std::move(texts.numpy)};
}

// The open menu. True when it is to be closed.
bool draw_menu(Context& context, std::string_view name, double value, bool& was_copied) {
    const auto texts = texts_of(value);
    ImGuiStorage& storage = *ImGui::GetStateStorage();
    const ImGuiID highlight_id = ImGui::GetID("highlighted");
    const int step = (key_pressed(Key::down) ? 1 : 0) - (key_pressed(Key::up) ? 1 : 0);
    const int last = static_cast<int>(texts.size()) - 1;
    constexpr int kExact = 1;
    const int before = ImGui::IsWindowAppearing() ? kExact : storage.GetInt(highlight_id, kExact);
    int highlighted = std::clamp(before + step, 0, last);
    bool close = key_pressed(Key::escape) || key_pressed(Key::tab);
    int taken = -1;
    if (!ImGui::IsWindowAppearing() && (key_pressed(Key::enter) || key_pressed(Key::space)))
        taken = highlighted;
    for (int i = 0; i <= last; ++i) {
        const auto index = static_cast<std::size_t>(i);
        Rect row = next_area(context, kCopyRow);
        row.x1 = row.x0 + std::round(context.px(kWidth));
        const std::string row_name = std::string(name) + "." + std::to_string(i);
        ImGui::SetCursorScreenPos({row.x0, row.y0});
        if (ImGui::InvisibleButton(row_name.c_str(), {row.width(), row.height()})) taken = i;
        probe(context, row_name, row, {}, texts[index]);
        if (ImGui::IsItemHovered() && (ImGui::GetIO().MouseDelta.x != 0 || ImGui::GetIO().MouseDelta.y != 0))
            highlighted = i;
        if (i == highlighted) fill_rect(context, inset(row, context.px(2)), {Role::field}, 4);
        const float y = (row.y0 + row.y1) / 2, x = row.x0 + context.px(12);
        text_mid(context, {x, y}, kKinds[index], {Role::muted}, {Face::sans, 13});
        text_mid(context, {x + context.px(kWords), y}, texts[index], {Role::text}, {Face::mono, 13});
    }
    storage.SetInt(highlight_id, highlighted);
    if (taken >= 0) ImGui::SetClipboardText(texts[static_cast<std::size_t>(taken)].c_str());
    was_copied = taken >= 0;
    return close || was_copied;
}

// For a moment, in the place of the number.
void draw_copied(Context& context, std::string_view name, Rect area) {
    constexpr Font kFont{Face::sans_bold, 13};
    const float width = text_width(context, "copied", kFont) + context.px(16), y = (area.y0 + area.y1) / 2;
    const Rect chip{area.x1 - width, y - context.px(11), area.x1, y + context.px(11)};
    fill_rect(context, chip, {Role::accent}, 4);
    text_mid(context, {chip.x0 + context.px(8), y}, "copied", {Role::inverse}, kFont);
    probe(context, std::string(name) + ".copied", chip);
    context.wants_redraw = true;  // until it goes
}

}  // namespace

void copyable(Context& context, std::string_view name, Rect area, double value) {
    const std::string popup = std::string(name) + ".copy";
    const Press hit = press(context, name, area, 4);
    const ImGuiID id = ImGui::GetID(std::string(name).c_str());
    const bool open = ImGui::IsPopupOpen(popup.c_str());
    if (hit.hovered || open)
        hline(context, area.x0 + context.px(6), area.x1, area.y1 - context.px(3), {Role::axis});
    ImGuiStorage& storage = *ImGui::GetStateStorage();  // of the window: outlives the menu
    const ImGuiID copied_id = ImGui::GetID((std::string(name) + ".copied").c_str());
    bool was_copied = false;
    if (hit.focused && !open && ImGui::GetIO().KeyCtrl && key_pressed(Key::c)) {
        ImGui::SetClipboardText(number_texts(value).exact.c_str());
        was_copied = true;
    }
    const auto say_copied = [&] {
        const auto now = static_cast<float>(ImGui::GetTime());
        if (was_copied) storage.SetFloat(copied_id, now + kCopied_s);
        if (now < storage.GetFloat(copied_id)) draw_copied(context, name, area);
    };
    if (hit.clicked && !open) {
        ImGui::OpenPopup(popup.c_str());
        context.focus.modal = id;
    }
    if (!hit.clicked && !open) {
        if (context.focus.modal == id) context.focus.modal = 0;  // closed by a click beside it
        return say_copied();
    }
    // Below the number, its right edge under the number's; above it where there is no room.
    const ImVec2 window = ImGui::GetIO().DisplaySize;
    const float height = context.px(kCopyRow) * static_cast<float>(kKinds.size()), gap = context.px(4);
    const float x =
        std::clamp(area.x1 - context.px(kWidth), 0.0F, std::max(0.0F, window.x - context.px(kWidth)));
    const bool below = area.y1 + gap + height <= window.y;
    ImGui::SetNextWindowPos({std::round(x), std::round(below ? area.y1 + gap : area.y0 - gap - height)});
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
    ImGui::PushStyleColor(ImGuiCol_Border, context.color(Role::axis));
    if (ImGui::BeginPopup(popup.c_str(), ImGuiWindowFlags_NoNav)) {
        if (draw_menu(context, name, value, was_copied)) {
            ImGui::CloseCurrentPopup();
            if (context.focus.modal == id) context.focus.modal = 0;
        }
        ImGui::EndPopup();
    } else if (context.focus.modal == id) {
        context.focus.modal = 0;
    }
    ImGui::PopStyleColor();
    ImGui::PopStyleVar(2);
    say_copied();
}

}  // namespace fp8lab::ui
