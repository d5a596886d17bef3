// The whole shell without a display or a window, with a profile of its own.
#pragma once

#include <string>
#include <string_view>

#include "app/shell/shell.h"
#include "tests/gui/gui.h"
#include "tests/scratch.h"

namespace fp8lab::test {

// The settings of a user who has been in every lab and left it on its controls.
inline Settings explored(Settings settings = {}) {
    for (const LabEntry& lab : lab_registry()) settings.tabs.emplace(lab.id, name_of(Tab::explore));
    return settings;
}

struct ShellDesk {
    // Without folders: a profile of its own.
    explicit ShellDesk(ImVec2 size = {1440, 900}, const Settings& settings = explored(),
                       const ProfileFolders& folders = {}, const Host& host = {})
        : gui(size),
          shell(gui.context, settings, {}, folders.data.empty() ? ProfileFolders(scratch.path) : folders,
                host) {
        if (host.reloads) shell.restore_left();
        frame();
        frame();
    }
    void frame() {
        ImGui::NewFrame();
        shell.frame(-1);
        ImGui::Render();
    }
    void drag(std::string_view probe, float dx, float dy) {
        const Point from = gui.center(probe);
        gui.move(from);
        frame();
        gui.mouse(true);
        frame();
        gui.move({from.x + dx, from.y + dy});
        frame();
        gui.mouse(false);
        frame();
        frame();
    }
    void click(std::string_view probe) { drag(probe, 0, 0); }
    void key(ui::Key key, bool ctrl = false, bool shift = false) {
        tap(
            key, [&] { frame(); }, ctrl, shift);
    }
    bool shows(std::string_view probe) const { return gui.context.probes.items.contains(probe); }

    Scratch scratch;
    Gui gui;
    Shell shell;
};

}  // namespace fp8lab::test
