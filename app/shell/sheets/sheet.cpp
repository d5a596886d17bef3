#include "app/shell/sheets/sheet.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab {
namespace {

constexpr float kSheetMargin = 24, kLeast = 16;  // inside, and to the window's edge
constexpr float kThumbMargin = 12;

}  // namespace

SheetArea begin_sheet(ui::Context& context, std::string_view name, std::string_view title, float width,
                      float height) {
    const ImVec2 window = ImGui::GetIO().DisplaySize;
    ImGui::SetNextWindowPos({0, 0});
    ImGui::SetNextWindowSize(window);
    ImGui::Begin(("sheet." + std::string(name)).c_str(), nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                     ImGuiWindowFlags_NoBackground | ImGuiWindowFlags_NoNav |
                     ImGuiWindowFlags_NoScrollWithMouse);
    ui::fill_rect(context, {0, 0, window.x, window.y}, {Role::surface, Tone::line, 0.7F});
    const auto px = [&](float logical) { return std::round(context.px(logical)); };
    const float w = std::min(px(width), window.x - 2 * px(kLeast));
    const float h = std::min(px(height), window.y - 2 * px(kLeast));
    const float x = std::round((window.x - w) / 2);
    const float y = std::round((window.y - h) * 0.4F);  // the optical middle
    const Rect box{x, y, x + w, y + h};
    ui::fill_rect(context, box, {Role::raised}, 6);
    ui::stroke_rect(context, box, {Role::axis}, 6);
    ui::probe(context, name, box);

    SheetArea area{{box.x0 + px(kSheetMargin), box.y0 + px(kSheetMargin), box.x1 - px(kSheetMargin),
                    box.y1 - px(kSheetMargin)}};
    if (!title.empty()) {
        const float middle = box.y0 + px(32);
        ui::text_mid(context, {area.content.x0, middle}, title, {Role::text}, {Face::sans_bold, 18});
        const Point cross{area.content.x1 - px(8), middle};
        const float reach = px(12);
        const ui::Press hit =
            ui::press(context, std::string(name) + ".close",
                      {cross.x - reach, middle - reach, cross.x + reach, middle + reach}, 4);
        ui::cross(context, cross, {hit.hovered ? Role::text : Role::muted});
        area.closed = hit.clicked;
        area.content.y0 = box.y0 + px(64);
        ui::hline(context, box.x0, box.x1, box.y0 + px(63), {Role::line});
    }
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    const bool beside = ImGui::IsMouseClicked(ImGuiMouseButton_Left) && !box.contains({mouse.x, mouse.y});
    area.closed |= ui::key_pressed(ui::Key::escape) || (beside && !ImGui::IsWindowAppearing());
    return area;
}

void end_sheet() { ImGui::End(); }

void begin_sheet_list(const ui::Context& context, const std::string& name, Rect area) {
    const float margin = std::round(context.px(kThumbMargin));
    ImGui::SetCursorScreenPos({area.x0 - margin, area.y0});
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {margin, 0});
    ImGui::BeginChild(name.c_str(), {area.width() + 2 * margin, area.height()}, false,
                      ImGuiWindowFlags_AlwaysUseWindowPadding | ImGuiWindowFlags_NoScrollbar);
    ImGui::PopStyleVar();
}

void end_sheet_list(const ui::Context& context) {
    ui::scroll_thumbs(context);
    ImGui::EndChild();
}

}  // namespace fp8lab
