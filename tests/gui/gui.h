// ImGui without a display: a test draws frames, moves the mouse and presses keys by the names of the probes.
#pragma once

#include <imgui.h>

#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "labs/ui/context.h"
#include "labs/ui/fonts.h"

namespace fp8lab::test {

// A key that is down in one frame and up in the next.
template <class Frame>
void tap(ui::Key key, Frame&& frame, bool ctrl = false, bool shift = false) {
    ui::feed_modifiers(ctrl, shift);
    ui::feed_key(key, true);
    frame();
    ui::feed_key(key, false);
    ui::feed_modifiers(false);
    frame();
}

class Gui {
  public:
    using Draw = std::function<void(ui::Context&)>;

    explicit Gui(ImVec2 size = {800, 600}, Theme theme = Theme::dark, float scale = 1) {
        ImGui::CreateContext();
        ImGuiIO& io = ImGui::GetIO();
        io.IniFilename = nullptr;
        io.DisplaySize = size;
        io.DeltaTime = 1.0F / 60;
        io.BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;  // as the window, of OpenGL 3.2
        ui::prepare_hand();
        context.theme = theme;
        context.scale = scale;
        context.probes.enabled = true;
        ui::load_fonts(context);
        io.Fonts->SetTexID(nullptr);
    }
    ~Gui() { ImGui::DestroyContext(); }
    Gui(const Gui&) = delete;
    Gui& operator=(const Gui&) = delete;

    // One frame of what `draw` draws in a window that fills the display, 24 px in.
    void frame(const Draw& draw) {
        raw_frame([&](ui::Context& c) {
            ImGui::SetNextWindowPos({0, 0});
            ImGui::SetNextWindowSize(ImGui::GetIO().DisplaySize);
            ImGui::Begin("test", nullptr, ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove);
            ImGui::SetCursorPos({c.px(24), c.px(24)});
            ImGui::BeginChild("inner", {c.px(312), 0});
            draw(c);
            ImGui::EndChild();
            ImGui::End();
        });
    }
    // One frame of something that opens its own windows.
    void raw_frame(const Draw& draw) {
        ImGui::NewFrame();
        ui::begin_frame(context);
        draw(context);
        ImGui::Render();
    }

    Rect rect(std::string_view probe) const {
        const auto found = context.probes.items.find(probe);
        if (found == context.probes.items.end())
            throw std::runtime_error("no control named " + std::string(probe));
        return found->second.rect;
    }
    void move(Point to) { ui::feed_mouse(to.x, to.y); }
    void mouse(bool down) { ui::feed_button(0, down); }
    Point center(std::string_view probe) const {
        const Rect r = rect(probe);
        return {(r.x0 + r.x1) / 2, (r.y0 + r.y1) / 2};
    }

    void click(std::string_view probe, const Draw& draw) { click(center(probe), draw); }
    void click(Point at, const Draw& draw) {
        move(at);
        frame(draw);
        mouse(true);
        frame(draw);
        mouse(false);
        frame(draw);
    }
    void press_key(ui::Key key, const Draw& draw, bool shift = false) {
        tap(
            key, [&] { frame(draw); }, false, shift);
    }
    void type(std::string_view text, const Draw& draw) {
        ui::feed_text(text);
        frame(draw);
    }

    ui::Context context;
};

// The first vertex that is not a number, as words; empty: none. Also says when nothing was drawn.
inline std::string draw_data_fault() {
    const ImDrawData& data = *ImGui::GetDrawData();
    if (data.TotalVtxCount == 0) return "nothing was drawn";
    for (int i = 0; i < data.CmdListsCount; ++i) {
        for (const ImDrawVert& v : data.CmdLists[i]->VtxBuffer) {
            if (!std::isfinite(v.pos.x) || !std::isfinite(v.pos.y)) return "a vertex is not finite";
        }
    }
    return {};
}

}  // namespace fp8lab::test
