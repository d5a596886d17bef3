// Nothing cut off and nothing overlapping: every screen and every sheet, at the sizes that we promise.
#include <doctest/doctest.h>

#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"
#include "tests/gui/screens/whole_desk.h"

using namespace fp8lab;
using test::Faults, test::kScreens, test::Screen, test::tested_screens;
using Desk = test::WholeDesk;

namespace {

void check_home(Screen screen) {
    Settings newcomer;
    Desk(screen, {}, newcomer).check("home of a newcomer");
    Settings later = test::toured();
    later.last_lab = "delayed";
    Desk(screen, {}, later).check("home with the way back into a lab");
}

void check_labs(Screen screen) {
    check_home(screen);
    Desk desk(screen);
    desk.check("home");
    for (const LabEntry& entry : lab_registry()) {
        const std::string id(entry.id);
        desk.shell.open(entry.id);
        if (desk.shell.lab()->live()) desk.shell.lab()->advance(60);
        desk.check(id);
        for (const Tab tab : {Tab::explore, Tab::learn}) {
            desk.shell.show(tab);
            desk.check(id + (tab == Tab::explore ? " explore" : " learn"));
        }
        desk.shell.show(Tab::exercises);
        for (std::size_t i = 0; i < desk.shell.lab()->exercises().size(); ++i) {
            desk.shell.exercises().select(*desk.shell.lab(), i);
            desk.check(id + " exercise " + std::to_string(i + 1));
        }
    }
}

// Every choice of every list, in the lab and its panel.
void check_choices(Screen screen) {
    Desk desk(screen);
    for (const LabEntry& entry : lab_registry()) {
        desk.shell.open(entry.id);
        desk.shell.show(Tab::explore);
        Lab& lab = *desk.shell.lab();
        if (lab.live()) continue;  // its lists ask for a training
        const nlohmann::json state = lab.state();
        const std::size_t count = lab.fields().size();
        for (std::size_t i = 0; i < count; ++i) {
            const Field field = lab.fields()[i];
            // The strips of a recorded trace have columns narrower than their digits; each n-th is written.
            if (field.info.name == "scenario") continue;
            for (const Choice& choice : field.choices) {
                const std::string assignment = field.info.name + "=" + std::string(choice.id);
                set_field(lab.fields(), assignment);
                desk.check(std::string(entry.id) + " " + assignment);
                lab.restore(state);
            }
        }
    }
}

void check_sheets(Screen screen) {
    Desk desk(screen);
    desk.check_sheet(Sheet::palette, "palette");
    desk.check_sheet(Sheet::keys, "keys");
    desk.check_sheet(Sheet::glossary, "glossary");
    for (const LabEntry& entry : lab_registry()) {
        desk.shell.open(entry.id);
        desk.draw();
        desk.check_sheet(Sheet::keys, "keys");
        desk.check_sheet(Sheet::scene, "scene");
        desk.check_sheet(Sheet::words, "words");
    }
}

}  // namespace

TEST_CASE("nothing is cut or overlaps at 1024x640") { check_labs(kScreens[0]); }
TEST_CASE("nothing is cut or overlaps at 1440x900") { check_labs(kScreens[1]); }
TEST_CASE("nothing is cut or overlaps at 1920x1080, scale 1.5") { check_labs(kScreens[2]); }
TEST_CASE("nothing is cut or overlaps at 3840x2160, scale 2") { check_labs(kScreens[3]); }
TEST_CASE("nothing is cut or overlaps at 3840x2160, scale 3") { check_labs(kScreens[4]); }
TEST_CASE("nothing is cut or overlaps whatever is chosen from the lists") {
    for (const Screen screen : tested_screens()) {
        CAPTURE(screen.size.x);
        CAPTURE(screen.scale);
        check_choices(screen);
    }
}
TEST_CASE("no sheet is cut at any of these sizes") {
    for (const Screen screen : tested_screens()) {
        CAPTURE(screen.size.x);
        CAPTURE(screen.scale);
        check_sheets(screen);
    }
}

TEST_CASE("the checks find what is cut, what overlaps and words across an edge") {
    test::Gui gui({400, 300});
    const auto faults = [&](const test::Gui::Draw& draw) {
        gui.frame(draw);
        gui.frame(draw);
        return Faults(gui.context, {}, {}, true).all();
    };
    const auto at = [](float x, float y) { ImGui::SetCursorPos({x, y}); };
    CHECK(faults([&](ui::Context& c) {
              at(10, 10), ui::button(c, "one", "One");
              at(10, 60), ui::button(c, "two", "Two");
          }) == "");
    CHECK(faults([&](ui::Context& c) {
              at(10, 10), ui::button(c, "one", "One", {.width = 100});
              at(80, 30), ui::button(c, "two", "Two", {.width = 100});
          }).find("one and two overlap") != std::string::npos);
    CHECK(faults([&](ui::Context& c) {
              at(250, 10), ui::button(c, "one", "One", {.width = 100});
          }).find("one is cut at a side") != std::string::npos);
    CHECK(faults([&](ui::Context& c) {
              at(250, 10), ui::text(c, "words that run on");
          }).find("cut at a side") != std::string::npos);
    CHECK(faults([&](ui::Context& c) {
              ui::text_mid(c, {40, 40}, "first words", {Role::text}, {Face::sans, 15});
              ui::text_mid(c, {60, 44}, "other words", {Role::muted}, {Face::sans, 15});
          }).find("overlap") != std::string::npos);
    const auto words = [](ui::Context& c, float x, float y) {
        ui::text_mid(c, {x, y}, "a line of words", {Role::text}, {Face::sans, 15});
    };
    const auto bar = [](ui::Context& c, Rect area, Role role) {
        ui::fill_rect(c, area, {role, Tone::fill}, 0);
    };
    CHECK(faults([&](ui::Context& c) {  // over the edge of a bar, with the bar or after it
              bar(c, {40, 60, 90, 90}, Role::e4m3);
              words(c, 60, 75);
          })
              .find("'a line of words' at 60,") != std::string::npos);
    CHECK(faults([&](ui::Context& c) {
              words(c, 60, 75);
              bar(c, {60, 60, 90, 90}, Role::e4m3);
          }).find("has a mark over it") != std::string::npos);
    CHECK(faults([&](ui::Context& c) {  // inside it, over a tint, and on a ground of its own
              bar(c, {40, 60, 300, 90}, Role::e4m3);
              ui::text_mid(c, {60, 75}, "a line of words", {Role::inverse}, {Face::sans, 15});
              ui::fill_rect(c, {40, 100, 90, 130}, {Role::e4m3, Tone::tint}, 0);
              words(c, 60, 115);
              bar(c, {40, 140, 90, 170}, Role::e4m3);
              bar(c, {55, 140, 200, 170}, Role::surface);
              words(c, 60, 155);
          }) == "");
    CHECK(faults([&](ui::Context& c) {
              ui::text_mid(c, {60, 75}, "one", {Role::text}, kSans13, Anchor::right);
              ui::text_mid(c, {61.5F, 75}, "two", {Role::text}, kSans13);
          }).find("touch") != std::string::npos);
    CHECK(faults([&](ui::Context& c) { words(c, 60, -40); }).find("is cut off") != std::string::npos);
    CHECK(faults([&](ui::Context& c) {
              at(60, 10), ui::button(c, "one", "", {.width = 100});
              ui::text_mid(c, {60, 50}, "a line of words", {Role::text}, {Face::sans, 15});
          }).find("across the edge of one") != std::string::npos);
}
