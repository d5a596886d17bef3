// What the shell itself does: navigation, keys, settings, export.
#include "app/shell/shell.h"

#include <doctest/doctest.h>
#include <imgui_internal.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/files/files.h"
#include "tests/gui/screens/shell_desk.h"

using namespace fp8lab;
using test::Gui;

namespace {

struct Desk : test::ShellDesk {
    using ShellDesk::ShellDesk;
    std::string lab() { return shell.lab() == nullptr ? "" : std::string(shell.lab()->info().id); }
};

const std::string kFirst{lab_registry().front().id};

std::string first_number() { return std::to_string(lab_registry().front().make()->info().number); }

}  // namespace

TEST_CASE("a card and a rail item open their lab, Home goes back") {
    Desk desk;
    desk.click("home." + kFirst);
    CHECK(desk.lab() == kFirst);
    desk.click("rail.home");
    CHECK(desk.lab().empty());
    desk.click("rail." + kFirst);
    CHECK(desk.lab() == kFirst);
}

TEST_CASE("Ctrl and a lab's number opens it, Ctrl+0 goes home") {
    Desk desk;
    desk.key(ui::Key::digit_0 + (first_number().front() - '0'), true);
    CHECK(desk.lab() == kFirst);
    desk.key(ui::Key::digit_0, true);
    CHECK(desk.lab().empty());
}

TEST_CASE("the lab visited last is offered on home, and Enter continues with it") {
    Settings settings;
    settings.last_lab = kFirst;
    Desk desk{{1440, 900}, settings};
    CHECK(desk.shows("home.continue"));
    desk.key(ui::Key::enter);
    CHECK(desk.lab() == kFirst);
}

TEST_CASE("a last lab that no longer exists is not offered") {
    Settings settings;
    settings.last_lab = "gone";
    Desk desk{{1440, 900}, settings};
    CHECK_FALSE(desk.shows("home.continue"));
}

TEST_CASE("Ctrl+T changes the theme, Ctrl and plus the scale, and both are to be saved") {
    Desk desk;
    desk.key(ui::Key::t, true);
    CHECK(desk.gui.context.theme == Theme::light);
    CHECK(desk.shell.settings().theme == Theme::light);
    desk.key(ui::Key::equal, true);
    CHECK(desk.gui.context.scale == 1.25F);
    CHECK(desk.shell.settings().scale == 1.25F);
    for (int i = 0; i < 20; ++i) desk.key(ui::Key::equal, true);
    CHECK(desk.gui.context.scale == kLargestScale);
    for (int i = 0; i < 20; ++i) desk.key(ui::Key::minus, true);
    CHECK(desk.gui.context.scale == kSmallestScale);
}

TEST_CASE("the panel folds to its tab and opens again, a wide window remembers it") {
    Desk desk;
    desk.shell.open(kFirst);
    desk.frame();
    CHECK(desk.shows("panel.reset"));
    desk.click("panel.fold");
    CHECK_FALSE(desk.shows("panel.reset"));
    CHECK_FALSE(desk.shell.settings().panel_open);
    desk.click("panel.fold");
    CHECK(desk.shows("panel.reset"));
}

TEST_CASE("a narrow window starts with the panel folded, and opening it is not remembered") {
    Desk desk{{1024, 640}};
    desk.shell.open(kFirst);
    desk.frame();
    CHECK_FALSE(desk.shows("panel.reset"));
    desk.click("panel.fold");
    CHECK(desk.shows("panel.reset"));
    CHECK(desk.shell.settings().panel_open);
}

TEST_CASE("the stage shows an edit of the panel in the frame in which it is made") {
    Desk desk;
    desk.shell.open("ruler");
    desk.frame();
    const Rect slider = desk.gui.rect("scale");
    desk.gui.move({slider.x0 + 0.25F * slider.width(), slider.y1 - 12});
    desk.frame();
    const auto values = [&] {  // of the last update(), the parameter itself aside
        std::vector<double> all;
        for (const Metric& metric : desk.shell.lab()->metrics()) {
            if (metric.name != "scale") all.push_back(metric.value);
        }
        return all;
    };
    const auto state = desk.shell.lab()->state();
    const auto before = values();
    desk.gui.mouse(true);
    desk.frame();
    REQUIRE(desk.shell.lab()->state() != state);
    CHECK(values() != before);
}

TEST_CASE("Reset all and Ctrl+Shift+R restore every default") {
    Desk desk;
    desk.shell.open(kFirst);
    const auto defaults = desk.shell.lab()->state();
    const auto disturb = [&] {
        for (const Field& field : desk.shell.lab()->fields()) {
            if (field.choices.size() < 2) continue;
            set_field(field,
                      field_text(field) == field.choices[0].id ? field.choices[1].id : field.choices[0].id);
        }
        CHECK(desk.shell.lab()->state() != defaults);
    };
    disturb();
    desk.frame();
    desk.click("panel.reset");
    CHECK(desk.shell.lab()->state() == defaults);
    disturb();
    desk.key(ui::Key::r, true, true);
    CHECK(desk.shell.lab()->state() == defaults);
}

TEST_CASE("each lab and tab keeps where it was scrolled to, and one that was not seen begins at its top") {
    Desk desk({1440, 900});
    const auto scroll = [&](const char* child) {
        for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
            if (window->WasActive && std::string_view(window->Name).find(child) != std::string_view::npos)
                return window->Scroll.y;
        return -1.0F;
    };
    desk.shell.open("bits");
    desk.shell.show(Tab::learn);
    desk.frame();
    desk.frame();
    const Rect panel = desk.gui.rect("panel.Learn");
    desk.gui.move({panel.x0, panel.y1 + 300});
    for (int i = 0; i < 10; ++i) {
        ui::feed_wheel(-5);
        desk.frame();
    }
    desk.frame();
    const float left_at = scroll("/Learn.bits");
    CHECK(left_at > 100);
    desk.shell.open("ruler");
    desk.shell.show(Tab::learn);
    desk.frame();
    desk.frame();
    CHECK(scroll("/Learn.ruler") == 0);
    desk.shell.open("bits");
    desk.frame();
    desk.frame();
    CHECK(scroll("/Learn.bits") == left_at);
}

TEST_CASE("a toast goes after a while, a fault stays until it is closed") {
    Desk desk({1440, 900});
    desk.shell.open("bits");
    desk.shell.say("Done", "That was it");
    desk.frame();
    CHECK(desk.gui.context.probes.items.contains("toast"));
    desk.shell.rest(50);
    desk.shell.rest(57.9);
    desk.frame();
    CHECK(desk.gui.context.probes.items.contains("toast"));
    desk.shell.rest(58.1);
    desk.frame();
    CHECK_FALSE(desk.gui.context.probes.items.contains("toast"));
    desk.shell.warn("Progress", "The file is damaged");
    for (int i = 0; i < 100; ++i) {
        desk.shell.rest(60 + i);
        desk.frame();
    }
    CHECK(desk.gui.context.probes.items.contains("toast"));
}

TEST_CASE(
    "a lab opens on its lesson the first time, and then on the tab that it was left with, also in the next "
    "window") {
    const Scratch profile;
    const auto tab = [](const test::ShellDesk& desk) {
        return desk.shows("bits.entry") ? "explore" : desk.shows("exercise.L1.1") ? "exercises" : "learn";
    };
    Settings kept;
    {
        test::ShellDesk desk({1440, 900}, {}, ProfileFolders(profile.path));
        desk.shell.open("bits");
        desk.frame();
        CHECK(std::string(tab(desk)) == "learn");
        desk.click("panel.Exercises");
        CHECK(std::string(tab(desk)) == "exercises");
        desk.shell.open("ruler");
        desk.frame();
        desk.frame();
        CHECK_FALSE(desk.shows("exercise.L2.1"));  // a tab of its own
        desk.click("panel.Explore");
        desk.shell.open("bits");
        desk.frame();
        desk.frame();
        CHECK(std::string(tab(desk)) == "exercises");
        kept = desk.shell.settings();
        save_settings(profile.path, kept);
    }
    test::ShellDesk again({1440, 900}, load_settings(profile.path).settings, ProfileFolders(profile.path));
    again.shell.open("ruler");
    again.frame();
    CHECK(again.shows("tensor"));
    again.shell.open("error");
    again.frame();
    again.frame();
    CHECK_FALSE(again.shows("exercise.L3.1"));
    CHECK_FALSE(again.shows("format"));
}
