#include "labs/ui/context.h"

#include <algorithm>

#include "labs/ui/fonts.h"

namespace fp8lab::ui {
namespace {

ImVec4 vec(ImU32 color) { return ImGui::ColorConvertU32ToFloat4(color); }

// What ImGui draws itself: text fields, popups and scrollbars.
void apply_style(const Context& context) {
    ImGuiStyle& style = ImGui::GetStyle();
    style.WindowPadding = {0, 0};
    style.WindowBorderSize = 0;
    style.WindowRounding = 0;
    style.ChildBorderSize = 0;
    style.PopupRounding = context.px(6);
    style.PopupBorderSize = 1;
    style.FrameRounding = context.px(4);
    style.FrameBorderSize = 1;
    style.FramePadding = {context.px(8), context.px(4)};
    style.ItemSpacing = {context.px(8), context.px(8)};
    style.ScrollbarSize = context.px(8);
    style.ScrollbarRounding = context.px(4);
    style.AntiAliasedLinesUseTex = false;
    ImVec4* colors = style.Colors;
    colors[ImGuiCol_WindowBg] = vec(context.color(Role::surface));
    colors[ImGuiCol_ChildBg] = {0, 0, 0, 0};
    colors[ImGuiCol_PopupBg] = vec(context.color(Role::raised));
    colors[ImGuiCol_Border] = vec(context.color(Role::line));
    colors[ImGuiCol_Text] = vec(context.color(Role::text));
    colors[ImGuiCol_FrameBg] = vec(context.color(Role::surface));
    colors[ImGuiCol_TextSelectedBg] = vec(context.color({Role::axis, Tone::line, 0.3F}));
    colors[ImGuiCol_ScrollbarBg] = {0, 0, 0, 0};
    colors[ImGuiCol_ScrollbarGrab] = vec(context.color(Role::line));
    colors[ImGuiCol_ScrollbarGrabHovered] = vec(context.color(Role::axis));
    colors[ImGuiCol_ScrollbarGrabActive] = vec(context.color(Role::axis));
}

// Tab leaves the focus where it was when nothing can take it.
void move_focus(Focus& focus) {
    const ImGuiIO& io = ImGui::GetIO();
    focus.moved = false;
    if (key_pressed(Key::escape) || ImGui::IsMouseClicked(ImGuiMouseButton_Left)) focus.visible = false;
    focus.into = focus.leave != 0;
    const bool tab = focus.modal == 0 && key_pressed(Key::tab) && !io.KeyCtrl;
    const bool back = focus.into ? focus.leave < 0 : io.KeyShift;
    focus.leave = 0;
    if ((focus.into || tab) && !focus.order.empty()) {
        const auto at = std::find(focus.order.begin(), focus.order.end(), focus.id);
        const auto count = focus.order.size();
        std::size_t next = back ? count - 1 : 0;
        if (at != focus.order.end()) {
            next = (static_cast<std::size_t>(at - focus.order.begin()) + (back ? count - 1 : 1)) % count;
        }
        focus.id = focus.order[next];
        focus.visible = true;
        focus.moved = true;
    }
    focus.order.clear();
}

}  // namespace

ImFont* Context::font(Font font) const {
    const auto found = fonts.find(font_key(font));
    return found == fonts.end() ? ImGui::GetFont() : found->second;
}

ImU32 Context::color(Color color) const {
    const Rgba c = rgba(theme, color);
    return IM_COL32(c.r, c.g, c.b, c.a);
}

void begin_frame(Context& context) {
    context.probes.items.clear();
    context.regions.clear();
    context.probes.texts.clear();
    context.wants_redraw = false;
    context.opens_text = false;
    move_focus(context.focus);
    apply_style(context);
}

bool key_pressed(Key key) { return !ImGui::GetIO().WantTextInput && pressed(key); }

void region(Context& context, std::string_view name, Rect rect) {
    const auto [at, is_new] = context.regions.try_emplace(std::string(name), rect);
    if (is_new) return;
    Rect& all = at->second;
    all = {std::min(all.x0, rect.x0), std::min(all.y0, rect.y0), std::max(all.x1, rect.x1),
           std::max(all.y1, rect.y1)};
}

void probe(Context& context, std::string_view name) {
    if (!context.probes.enabled) return;
    const ImVec2 lo = ImGui::GetItemRectMin();
    const ImVec2 hi = ImGui::GetItemRectMax();
    probe(context, name, {lo.x, lo.y, hi.x, hi.y});
}

void probe(Context& context, std::string_view name, Rect rect, std::optional<Extents> axes,
           std::string_view words) {
    if (!context.probes.enabled) return;
    const ImVec2 lo = ImGui::GetWindowDrawList()->GetClipRectMin();
    const ImVec2 hi = ImGui::GetWindowDrawList()->GetClipRectMax();
    context.probes.items.insert_or_assign(std::string(name),
                                          Probes::Item{rect,
                                                       {lo.x, lo.y, hi.x, hi.y},
                                                       axes,
                                                       std::string(words),
                                                       context.focus.reach == Focus::Reach::live});
}

}  // namespace fp8lab::ui
