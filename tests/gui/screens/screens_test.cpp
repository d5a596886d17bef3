// Every screen at every size, theme and scale, drawn without a display.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "app/shell/shell.h"
#include "tests/all.h"
#include "tests/gui/gui.h"

using namespace fp8lab;
using test::Gui;

namespace {

const Machine kMachine{Provenance::cpu_emulated, "No NVIDIA driver found (libcuda.so.1 is missing)."};

void draw(Shell& shell, int frames = 4) {
    for (int i = 0; i < frames; ++i) {
        ImGui::NewFrame();
        shell.frame(1.5);
        ImGui::Render();
    }
}

Rect visible(const ui::Probes::Item& item) {
    return {std::max(item.rect.x0, item.clip.x0), std::max(item.rect.y0, item.clip.y0),
            std::min(item.rect.x1, item.clip.x1), std::min(item.rect.y1, item.clip.y1)};
}

// The smaller has its centre in the larger: a part of it, or a handle on its edge.
bool belongs_together(Rect a, Rect b) {
    const bool a_smaller = a.width() * a.height() < b.width() * b.height();
    const Rect small = a_smaller ? a : b;
    const Rect large = a_smaller ? b : a;
    const Point center{(small.x0 + small.x1) / 2, (small.y0 + small.y1) / 2};
    return center.x >= large.x0 - 1 && center.x <= large.x1 + 1 && center.y >= large.y0 - 1 &&
           center.y <= large.y1 + 1;
}

// Names of two controls of which each lies on an edge of the other.
std::string overlap(const ui::Probes& probes) {
    for (auto a = probes.items.begin(); a != probes.items.end(); ++a) {
        const Rect first = visible(a->second);
        for (auto b = std::next(a); b != probes.items.end(); ++b) {
            const Rect second = visible(b->second);
            const float width = std::min(first.x1, second.x1) - std::max(first.x0, second.x0);
            const float height = std::min(first.y1, second.y1) - std::max(first.y0, second.y0);
            if (width > 1 && height > 1 && !belongs_together(first, second))
                return a->first + " and " + b->first;
        }
    }
    return {};
}

// The first control that leaves its column at the left or right.
std::string outside(const ui::Probes& probes) {
    for (const auto& [name, item] : probes.items) {
        if (item.rect.x0 < item.clip.x0 - 1 || item.rect.x1 > item.clip.x1 + 1) return name;
    }
    return {};
}

// Where a glyph crosses the left or right edge of what may be seen; (0, 0): nowhere. A triangle whose texture
// coordinates are not the white pixel's belongs to a glyph.
Point cut_glyph() {
    const ImDrawData& data = *ImGui::GetDrawData();
    const ImVec2 white = ImGui::GetFontTexUvWhitePixel();
    for (int i = 0; i < data.CmdListsCount; ++i) {
        const ImDrawList& list = *data.CmdLists[i];
        for (const ImDrawCmd& command : list.CmdBuffer) {
            for (unsigned k = 0; k + 2 < command.ElemCount; k += 3) {
                const auto index = list.IdxBuffer[static_cast<int>(command.IdxOffset + k)];
                const auto far_index = list.IdxBuffer[static_cast<int>(command.IdxOffset + k + 2)];
                const ImDrawVert& a = list.VtxBuffer[static_cast<int>(command.VtxOffset + index)];
                const ImDrawVert& c = list.VtxBuffer[static_cast<int>(command.VtxOffset + far_index)];
                if (a.uv.x == white.x && a.uv.y == white.y) continue;
                const bool shown = c.pos.y > command.ClipRect.y && a.pos.y < command.ClipRect.w;
                const float lo = std::min(a.pos.x, c.pos.x);
                const float hi = std::max(a.pos.x, c.pos.x);
                const auto crosses = [&](float edge) { return lo < edge - 1.5F && hi > edge + 1.5F; };
                if (shown && (crosses(command.ClipRect.x) || crosses(command.ClipRect.z)))
                    return {a.pos.x, a.pos.y};
            }
        }
    }
    return {};
}

// A window too narrow for rail, panel and the smallest stage scrolls sideways: only roomy ones show
// everything.
bool roomy(const ui::Context& context) {
    const bool panel_open = context.probes.items.contains("panel.reset");
    return ImGui::GetIO().DisplaySize.x >= (56 + (panel_open ? 360 : 24) + 528) * context.scale;
}

// `whole`: the window has room for everything, so that it must be looked for.
void check_screen(const ui::Context& context, bool whole) {
    CHECK(test::draw_data_fault() == "");
    CHECK(overlap(context.probes) == "");
    CHECK((roomy(context) || !whole));
    if (!roomy(context)) return;
    CHECK(outside(context.probes) == "");
    const Point cut = cut_glyph();
    CAPTURE(cut.x);
    CAPTURE(cut.y);
    CHECK((cut.x == 0 && cut.y == 0));
}

void check_all_screens(ImVec2 size) {
    for (const Theme theme : {Theme::dark, Theme::light}) {
        if (theme == Theme::light && !tests_all()) continue;  // it has other colours, in the same places
        for (const float scale : {0.75F, 1.0F, 1.5F, 2.0F, 3.0F}) {
            Gui gui{size, theme, scale};
            Settings settings;
            settings.theme = theme;
            Shell shell{gui.context, settings, kMachine, std::filesystem::path("/nowhere")};
            CAPTURE(size.x);
            CAPTURE(scale);
            const bool whole = size.x >= 944 * scale;  // rail 56, panel 360, stage 528
            CAPTURE(std::string(to_string(theme)));
            draw(shell);
            check_screen(gui.context, whole);
            for (const LabEntry& entry : lab_registry()) {
                CAPTURE(std::string(entry.id));
                shell.open(entry.id);
                draw(shell);
                check_screen(gui.context, whole);
                for (const Tab tab : {Tab::explore, Tab::learn, Tab::exercises}) {
                    shell.show(tab);
                    draw(shell);
                    check_screen(gui.context, whole);
                }
            }
        }
    }
}

}  // namespace

TEST_CASE("every screen is whole at 1440x900") { check_all_screens({1440, 900}); }
TEST_CASE("every screen is whole at 1024x640") { check_all_screens({1024, 640}); }
TEST_CASE("every screen is whole at 1920x1080") { check_all_screens({1920, 1080}); }

TEST_CASE("a window smaller than any we support still draws") {
    Gui gui{{320, 240}};
    Shell shell{gui.context, {}, kMachine, std::filesystem::path("/nowhere")};
    draw(shell);
    CHECK(test::draw_data_fault() == "");
    for (const LabEntry& entry : lab_registry()) {
        shell.open(entry.id);
        draw(shell);
        CHECK(test::draw_data_fault() == "");
    }
}

TEST_CASE("every lab has a view") {
    for (const LabEntry& entry : lab_registry()) {
        CAPTURE(std::string(entry.id));
        const auto lab = entry.make();
        CHECK(make_view(*lab) != nullptr);
    }
}

TEST_CASE("the labs of the rail end above the status line, however low the window is") {
    for (const ImVec2 size : {ImVec2{640, 480}, ImVec2{640, 360}, ImVec2{1024, 640}})
        for (const float scale : {1.0F, 2.0F, 3.0F}) {
            CAPTURE(size.y);
            CAPTURE(scale);
            Gui gui{size, Theme::dark, scale};
            Shell shell{gui.context, {}, kMachine, std::filesystem::path("/nowhere")};
            shell.open("wide");
            draw(shell);
            const float status = make_window_layout(size.x, size.y, scale, true, true, true).status.y0;
            for (const LabEntry& entry : lab_registry()) {
                const auto found = gui.context.probes.items.find("rail." + std::string(entry.id));
                if (found == gui.context.probes.items.end()) continue;  // no room for one
                CAPTURE(found->first);
                CHECK(visible(found->second).y1 <= status);
            }
        }
}
