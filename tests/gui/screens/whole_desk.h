// Every screen at the sizes that we promise, and what is wrong with what it shows.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "app/shell/shell.h"
#include "tests/all.h"
#include "tests/gui/gui.h"
#include "tests/gui/screens/geometry.h"
#include "tests/gui/screens/shell_desk.h"
#include "tests/scratch.h"

namespace fp8lab::test {

struct Screen {
    ImVec2 size;
    float scale;
};
inline const std::array<Screen, 5> kScreens = {
    {{{1024, 640}, 1}, {{1440, 900}, 1}, {{1920, 1080}, 1.5F}, {{3840, 2160}, 2}, {{3840, 2160}, 3}}};

// Those on which every run of the tests looks at what lies over the window: the smallest window and the largest text.
// FP8LAB_TEST_ALL=1: all of them.
inline std::vector<Screen> tested_screens() {
    if (tests_all()) return {kScreens.begin(), kScreens.end()};
    return {kScreens.front(), kScreens.back()};
}

inline const Machine kMachine{Provenance::cpu_emulated, "No NVIDIA driver found (libcuda.so.1 is missing)."};

inline Settings toured() {
    Settings settings;
    settings.toured = true;
    return explored(settings);
}

struct WholeDesk {
    // Without folders: a profile of its own.
    explicit WholeDesk(Screen screen, const ProfileFolders& folders = {}, const Settings& settings = toured())
        : gui(screen.size, Theme::dark, screen.scale),
          shell(gui.context, settings, kMachine,
                folders.data.empty() ? ProfileFolders(scratch.path) : folders) {}
    void draw(int frames = 4) {
        for (int i = 0; i < frames; ++i) {
            ImGui::NewFrame();
            shell.frame(1.5);
            ImGui::Render();
        }
    }
    void check(const std::string& what) {
        draw();
        const Lab* lab = shell.lab();
        if (lab != nullptr && !lab->live()) {  // not what it showed before
            while (lab->busy()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            draw();
        }
        CAPTURE(what);
        CHECK(Faults(gui.context).all() == "");
    }
    void check_sheet(Sheet sheet, const std::string& name) {
        shell.open(sheet);
        draw();
        CAPTURE(name);
        REQUIRE(gui.context.probes.items.contains(name));
        CHECK(Faults(gui.context, "sheet." + name, name).all() == "");
        shell.open(Sheet::none);
    }

    Scratch scratch;
    Gui gui;
    Shell shell;
};

}  // namespace fp8lab::test
