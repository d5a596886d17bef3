// One lab's view without a display and without the shell: the stage left and the panel right, as the shell
// lays them out.
#pragma once

#include "core/base/fields.h"
#include "core/figure/axis.h"
#include "tests/gui/gui.h"

namespace fp8lab::test {

template <class Lab, class View>
struct LabScreen {
    // stage: physical px.
    explicit LabScreen(ImVec2 stage = {860, 780}, float scale = 1, Theme theme = Theme::dark)
        : gui({stage.x + 360 * scale, stage.y}, theme, scale),
          area{24 * scale, 24 * scale, stage.x - 24 * scale, stage.y - 24 * scale} {
        frame();
    }
    void frame() {
        lab.update();
        gui.raw_frame([&](ui::Context& c) {
            ImGui::SetNextWindowPos({0, 0});
            ImGui::SetNextWindowSize(ImGui::GetIO().DisplaySize);
            ImGui::Begin("screen", nullptr, ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove);
            view.stage(c, area);
            ImGui::SetCursorScreenPos({area.x1 + c.px(48), c.px(24)});
            ImGui::BeginChild("panel", {c.px(312), 0});
            view.explore(c, c.px(312));
            ImGui::EndChild();
            ImGui::End();
        });
    }
    void set(std::string_view assignment) {  // what was drawn before it is forgotten
        set_field(lab.fields(), assignment);
        gui.context.probes.items.clear();
        frame();
    }
    // In several moves, as a hand does it.
    void drag(Point from, float dx, int moves = 8) {
        gui.move(from);
        frame();
        gui.mouse(true);
        frame();
        for (int i = 1; i <= moves; ++i) {
            gui.move({from.x + dx * static_cast<float>(i) / static_cast<float>(moves), from.y});
            frame();
        }
        gui.mouse(false);
        frame();
    }
    void drag(std::string_view probe, float dx, int moves = 8) { drag(gui.center(probe), dx, moves); }
    void click(Point at) {
        drag(at, 0, 0);
        frame();  // what the click changed
    }
    void click(std::string_view probe) { click(gui.center(probe)); }
    // Where a plot has a point of its figure.
    Point place(std::string_view plot, const Figure& figure, double x, double y) const {
        const auto& item = gui.context.probes.items.find(plot)->second;
        const Axis across(figure.x, item.axes->x, double(item.rect.x0), double(item.rect.x1));
        const Axis up(figure.y, item.axes->y, double(item.rect.y1), double(item.rect.y0));
        return {static_cast<float>(across.to_px(x)), static_cast<float>(up.to_px(y))};
    }
    bool shows(std::string_view probe) const { return gui.context.probes.items.contains(probe); }
    std::string words(std::string_view probe) const {
        return gui.context.probes.items.find(probe)->second.words;
    }

    Lab lab;
    View view{lab};
    Gui gui;
    Rect area;
};

}  // namespace fp8lab::test
