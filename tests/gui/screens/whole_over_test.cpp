// Nothing cut off and nothing overlapping in what lies over a screen: help, tour, tooltips, lists and menus,
// export, the question after a crash.
#include <cstdlib>

#include "tests/gui/screens/whole_desk.h"

using namespace fp8lab;
using test::Faults, test::intersection, test::Screen, test::tested_screens;

namespace {

struct Desk : test::WholeDesk {
    using WholeDesk::WholeDesk;
    void key(ui::Key key, bool ctrl = false) {
        test::tap(
            key, [&] { draw(1); }, ctrl);
        draw(1);
    }
    void escape() { key(ui::Key::escape); }
    void click(const std::string& probe) {
        gui.move(gui.center(probe));
        draw(2);
        gui.mouse(true);
        draw(1);
        gui.mouse(false);
        draw(2);
    }
    bool shows(std::string_view probe) const { return gui.context.probes.items.contains(probe); }
    // What can be pointed at now, of the stage and the panel; with `all`, of rail and home as well.
    std::vector<std::string> controls(bool all) const {
        std::vector<std::string> names;
        for (const auto& [name, item] : gui.context.probes.items) {
            const Rect seen = intersection(item.rect, item.clip);
            const bool frame = name.starts_with("rail.") || name.starts_with("home.");
            const Point middle{(item.rect.x0 + item.rect.x1) / 2, (item.rect.y0 + item.rect.y1) / 2};
            if (seen.contains(middle) && (all || !frame)) names.push_back(name);
        }
        return names;
    }
    // What ImGui drew above the shell, and of which `flag` says what it is; null: nothing.
    static const ImGuiWindow* over(ImGuiWindowFlags flag) {
        for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
            if (window->WasActive && !window->Hidden && (window->Flags & flag) != 0) return window;
        return nullptr;
    }
    void check_over(std::string_view layer, std::string_view prefix, const std::string& what) {
        CAPTURE(what);
        CHECK(Faults(gui.context, layer, prefix).all() == "");
    }
    void check_inside(const ImGuiWindow& window, const std::string& what) {
        CAPTURE(what);
        const ImVec2 display = ImGui::GetIO().DisplaySize;
        CHECK(test::holds({0, 0, display.x, display.y}, test::rect_of(window.Rect()), 1));
    }
    void check_apart(const std::string& a, const std::string& b) {
        if (!shows(b)) return;
        const Rect both = intersection(gui.rect(a), gui.rect(b));
        CAPTURE(b);
        CHECK_FALSE((both.width() > 1 && both.height() > 1));
    }
};

// What opens a sheet or starts something has tests of its own.
bool belongs_elsewhere(std::string_view control) {
    for (const char* prefix : {"panel.", "shell.", "toast", "status.", "exercise", "predict", "train.run"})
        if (control.starts_with(prefix)) return true;
    return false;
}

// Calls `see` on home and on each lab, in each tab.
template <class See>
void everywhere(Desk& desk, See&& see) {
    desk.draw();
    see("home");
    for (const LabEntry& entry : lab_registry()) {
        desk.shell.open(entry.id);
        for (const Tab tab : {Tab::explore, Tab::exercises}) {
            desk.shell.show(tab);
            desk.draw();
            see(std::string(entry.id));
        }
    }
}

template <class Check>
void at_every_size(Check&& check) {
    for (const Screen screen : tested_screens()) {
        CAPTURE(screen.size.x);
        CAPTURE(screen.scale);
        Desk desk(screen);
        check(desk);
    }
}

}  // namespace

TEST_CASE("no help of any control is cut at any size, or lies over its control") {
    at_every_size([](Desk& desk) {
        int told = 0;
        everywhere(desk, [&](const std::string& where) {
            for (const std::string& control : desk.controls(true)) {
                desk.shell.explain(control);
                desk.draw(2);
                if (desk.shows("help.card")) {
                    ++told;
                    desk.check_over("help", "help", where + ": " + control);
                }
                desk.escape();
            }
        });
        CHECK(told > 150);
    });
}

TEST_CASE("no step of the tour is cut at any size, or lies over what it is about") {
    at_every_size([](Desk& desk) {
        const auto set = [&](const char* assignment) {
            set_field(desk.shell.lab()->fields(), assignment);
            desk.draw();
        };
        desk.shell.start_tour();
        for (int step = 1; step <= 4; ++step) {
            desk.draw();
            REQUIRE(desk.shows("tour"));
            desk.check_over("tour", "tour", "step " + std::to_string(step));
            const std::vector<const char*> about[] = {{"bits.bit7", "bits.bit3", "bits.bit0"},
                                                      {"bits.format0"},
                                                      {"bits.format0"},
                                                      {"panel.Learn", "panel.Exercises", "panel.fold"}};
            for (const char* control : about[step - 1]) desk.check_apart("tour", control);
            if (step == 1) set("code=17");
            if (step == 2) set("format=e5m2");
            if (step == 3) {
                desk.shell.explain("bits.format0");
                desk.draw();
                desk.escape();
            }
        }
        desk.shell.show(Tab::learn);
        desk.draw();
        CHECK_FALSE(desk.shows("tour"));
    });
}

TEST_CASE("no tooltip is cut at any size") {
    at_every_size([](Desk& desk) {
        int seen = 0;
        everywhere(desk, [&](const std::string& where) {
            for (const std::string& control : desk.controls(true)) {
                desk.gui.move(desk.gui.center(control));
                ImGui::GetIO().DeltaTime = 0.5F;  // it comes after a moment
                desk.draw(3);
                ImGui::GetIO().DeltaTime = 1.0F / 60;
                const ImGuiWindow* tip = Desk::over(ImGuiWindowFlags_Tooltip);
                if (tip == nullptr) continue;
                ++seen;
                desk.check_inside(*tip, where + ": " + control);
                desk.check_over(tip->Name, "nothing", where + ": " + control);
            }
            desk.gui.move({-1, -1});
        });
        CHECK(seen > 30);
    });
}

TEST_CASE("no list and no menu is cut at any size") {
    at_every_size([](Desk& desk) {
        int opened = 0;
        everywhere(desk, [&](const std::string& where) {
            for (const std::string& control : desk.controls(false)) {
                if (!desk.shows(control) || belongs_elsewhere(control)) continue;
                desk.click(control);
                if (const ImGuiWindow* list = Desk::over(ImGuiWindowFlags_Popup)) {
                    ++opened;
                    desk.check_inside(*list, where + ": " + control);
                    desk.check_over(list->Name, control + ".", where + ": " + control);
                    desk.escape();
                }
            }
        });
        CHECK(opened > 5);
    });
}

TEST_CASE("the export panel is not cut at any size: each kind, each format, and the question") {
    at_every_size([](Desk& desk) {
        ::setenv("XDG_DOCUMENTS_DIR", desk.scratch.path.c_str(), 1);
        for (const LabEntry& entry : lab_registry()) {
            const std::string id(entry.id);
            desk.shell.open(entry.id);
            desk.draw();
            desk.key(ui::Key::e, true);
            REQUIRE(desk.shows("export.what"));
            const auto check = [&](const std::string& what) {
                desk.check_over("sheet.export", "export", id + ", " + what);
            };
            for (const char* format : {"export.format.0", "export.format.1", "export.format.2"}) {
                desk.click(format);
                check(format);
            }
            desk.click("export.figure");
            const ImGuiWindow* list = Desk::over(ImGuiWindowFlags_Popup);
            REQUIRE(list != nullptr);
            desk.check_inside(*list, id);
            desk.check_over(list->Name, "export.figure.", id + ", the figures' list");
            desk.escape();
            for (const char* kind : {"export.what.1", "export.what.2"}) {
                desk.click(kind);
                check(kind);
            }
            desk.click("export.save");  // closes, or asks: the second lab finds the first one's
            if (desk.shows("export.save")) check("the question");
            if (desk.shows("export.save")) desk.click("export.cancel");
        }
        ::unsetenv("XDG_DOCUMENTS_DIR");
    });
}

TEST_CASE("the question after a crash is not cut at any size") {
    for (const Screen screen : tested_screens()) {
        const Scratch home;
        const ProfileFolders folders{home.path};
        for (const bool crashed : {false, true}) {
            Desk desk(screen, folders);
            desk.draw();
            if (crashed) {
                REQUIRE(desk.shows("recovery"));
                desk.check_over("recovery", "recovery", "the question");
            } else {
                desk.shell.open("bits");
                desk.draw();
                set_field(desk.shell.lab()->fields(), "code=17");
                desk.draw();
                desk.shell.rest(0);
            }
        }
    }
}
