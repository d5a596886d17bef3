// A learner's way through an exercise in the panel, without a display.
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "core/files/files.h"
#include "labs/grading/recheck.h"
#include "tests/gui/screens/shell_desk.h"

using namespace fp8lab;
using test::Gui;

namespace {

struct Desk : test::ShellDesk {
    explicit Desk(const char* lab, ImVec2 size = {1440, 900}, const ProfileFolders& folders = {})
        : ShellDesk(size, {}, folders) {
        shell.open(lab);
        shell.show(Tab::exercises);
        frame();
        frame();
    }
    void type(std::string_view text) {
        frame();  // the field has the keyboard from its second frame on
        for (const char c : text) {
            ui::feed_text({&c, 1});
            frame();
        }
        key(ui::Key::enter);
    }
    const Evidence* passed(std::string_view exercise) {
        return shell.exercises().progress().passed(exercise);
    }
};

}  // namespace

TEST_CASE("predict, act, pass: the stage is empty until the prediction, and evidence is kept that stands") {
    Desk desk("bits");
    CHECK_FALSE(desk.shows("bits.bit0"));
    desk.drag("predict.number", -60, 0);
    desk.click("predict.commit");
    REQUIRE(desk.shows("bits.bit0"));
    CHECK(desk.shows("exercise.conditions"));
    for (const char* bit : {"bits.bit6", "bits.bit2"}) desk.click(bit);
    CHECK(desk.passed("L1.1") == nullptr);
    desk.click("bits.bit1");
    const Evidence* evidence = desk.passed("L1.1");
    REQUIRE(evidence != nullptr);
    CHECK(desk.shows("exercise.evidence"));
    CHECK(desk.shows("toast"));
    CHECK_FALSE(evidence->prediction.skipped);
    CHECK(evidence->prediction.values.size() == 1);
    CHECK(evidence->measured == std::vector{2.0});
    const auto file = desk.shell.exercises().progress().file("L1.1");
    CHECK(recheck(parse_evidence(read_text(file), file.string()), false).stands());

    desk.click("exercise.why");
    desk.type("NaN takes two");
    CHECK(parse_evidence(read_text(file), file.string()).explanation == "NaN takes two");
    desk.click("exercise.next");
    CHECK(desk.shows("exercise.start"));
}

TEST_CASE("typing an explanation moves nothing, and the press on the button below both keeps it and acts") {
    Desk desk("bits");
    desk.drag("predict.number", -40, 0);
    desk.click("predict.commit");
    for (const char* bit : {"bits.bit6", "bits.bit2", "bits.bit1"}) desk.click(bit);
    REQUIRE(desk.passed("L1.1") != nullptr);
    desk.frame();
    const auto top = [&] { return desk.gui.rect("exercise.next").y0; };
    const float before = top();
    desk.click("exercise.why");
    for (int i = 0; i < 3; ++i) desk.frame();
    CHECK(top() == before);
    const std::string words =
        "Because the largest significand goes with the largest exponent but one, and not all ones";
    ui::feed_text(words);
    for (int i = 0; i < 3; ++i) {
        desk.frame();
        CHECK(top() == before);
    }
    desk.click("exercise.next");
    CHECK(desk.passed("L1.1")->explanation == words);
    CHECK(desk.gui.context.typing.name.empty());
    desk.gui.context.probes.items.clear();
    desk.frame();
    CHECK(desk.shows("exercise.start"));  // the next exercise is open
}

TEST_CASE("a prediction can be skipped, hints open one by one, and all of it is in the evidence") {
    Desk desk("ruler");
    desk.click("exercise.L2.2");
    CHECK(desk.shows("predict.skip"));
    desk.click("predict.skip");
    desk.key(ui::Key::h);
    desk.click("panel.hint");
    desk.click("exercise.hint");
    CHECK_FALSE(desk.shows("exercise.hint"));
    CHECK_FALSE(desk.shows("panel.hint"));
    for (const char* setting : {"brush_lo=0", "brush_hi=2"}) {
        set_field(desk.shell.lab()->fields(), setting);
        desk.frame();
    }
    REQUIRE(desk.passed("L2.2") != nullptr);
    CHECK(desk.passed("L2.2")->prediction.skipped);
    CHECK(desk.passed("L2.2")->hints == 3);
}

TEST_CASE("an answer is typed in the panel, a wrong one can be typed again") {
    Desk desk("ruler");
    desk.click("exercise.L2.3");
    desk.click("exercise.start");
    set_field(desk.shell.lab()->fields(), "fixed_point=on");
    desk.frame();
    desk.click("answer.value");
    desk.type("0.625");
    CHECK(desk.passed("L2.3") == nullptr);
    desk.click("answer.value");
    desk.type("9/32");
    CHECK(desk.passed("L2.3") == nullptr);  // 0.6259/32: typing goes on where the text ends
    desk.click("answer.value");
    for (int i = 0; i < 12; ++i) desk.key(ui::Key::backspace);
    desk.type("9/32");
    REQUIRE(desk.passed("L2.3") != nullptr);
    CHECK(desk.passed("L2.3")->groups.size() == 4);
}

TEST_CASE("while an attempt is under way the other tabs say so, and Reset all starts it anew") {
    Desk desk("bits");
    desk.click("predict.skip");
    desk.click("bits.bit0");
    desk.click("panel.Explore");
    CHECK(desk.shows("exercise.strip"));
    desk.click("panel.reset");
    CHECK(desk.shows("exercise.strip"));
    const auto code = [&] { return field_text(desk.shell.lab()->fields()[3]); };
    CHECK(code() == "56");
    desk.click("exercise.strip");
    CHECK(desk.shows("exercise.conditions"));
    desk.click("panel.Explore");
    CHECK_FALSE(desk.shows("exercise.conditions"));
}

TEST_CASE("what was begun keeps its lab: opening another and coming back changes nothing") {
    Desk desk("bits");
    desk.click("predict.skip");
    desk.click("bits.bit6");
    desk.shell.open("ruler");
    desk.frame();
    desk.shell.open("bits");
    desk.frame();
    desk.click("bits.bit2");
    desk.click("bits.bit1");
    REQUIRE(desk.passed("L1.1") != nullptr);
    CHECK(desk.passed("L1.1")->groups.size() == 3);
}

TEST_CASE("a claim card's experiment sets the lab, and is locked while an exercise runs") {
    Desk desk("bits");
    desk.shell.show(Tab::learn);
    desk.frame();
    desk.frame();
    REQUIRE(desk.shows("claim.1"));
    desk.gui.context.focus.visible = false;
    const auto format = [&] { return field_text(desk.shell.lab()->fields()[0]); };
    CHECK(format() == "e4m3");
    desk.gui.move({1300, 500});
    for (int i = 0; i < 40; ++i) {  // down to the cards
        ui::feed_wheel(-3);
        desk.frame();
    }
    desk.click("claim.1");
    CHECK(format() == "e3m2");
}

TEST_CASE(
    "the number that a prediction begins with can be committed, a choice is made first, and that is said") {
    {
        Desk number("bits");
        number.click("predict.commit");
        CHECK(number.shows("bits.bit0"));
    }
    Desk choice("train");
    choice.click("predict.commit");
    CHECK(choice.shows("predict.commit"));
    choice.click("predict.choice1");
    choice.click("predict.commit");
    CHECK_FALSE(choice.shows("predict.commit"));
}

TEST_CASE(
    "an answer that is not a number is refused with a reason and does not reach the attempt, Tab goes to the "
    "next field") {
    Desk desk("error");
    desk.click("predict.skip");
    desk.click("answer.e4m3");
    desk.frame();
    const auto type = [&](std::string_view text) {
        for (const char c : text) {
            ui::feed_text({&c, 1});
            desk.frame();
        }
    };
    type("5.8811.1");
    const auto answers = [&] {
        std::vector<std::string> words;
        for (const auto& [name, item] : desk.gui.context.probes.items)
            if (name.starts_with("answer.refused")) words.push_back(item.words);
        return words;
    };
    desk.key(ui::Key::tab);
    for (int i = 0; i < 3; ++i) desk.frame();  // the next field has the keyboard
    REQUIRE(answers().size() == 1);
    CHECK(answers().front().find("5.8811.1") != std::string::npos);
    CHECK(desk.gui.context.typing.name == "answer.e5m2");
    type("1/8");
    desk.key(ui::Key::enter);
    CHECK(answers().size() == 1);
}

TEST_CASE("a hint that is opened below the panel's edge comes into view") {
    Desk desk("error", {1024, 640});
    desk.click("predict.skip");
    for (int hint = 0; hint < 3; ++hint) {
        desk.key(ui::Key::h);
        desk.frame();
        desk.frame();
    }
    const auto& item = desk.gui.context.probes.items.find("exercise.hint_end");
    REQUIRE(item != desk.gui.context.probes.items.end());
    CHECK(item->second.rect.y1 <= item->second.clip.y1 + 1);
    CHECK(item->second.rect.y0 >= item->second.clip.y0 - 1);
}

TEST_CASE("L11.3 passed: all mixes are drawn by themselves, after Reset all and in the next window too") {
    const Scratch profile;
    const auto revealed = [](Shell& shell) {
        return field_text(*find_field(shell.lab()->fields(), "revealed"));
    };
    {
        Desk desk("lower", {1440, 900}, ProfileFolders(profile.path));
        CHECK(revealed(desk.shell) == "off");
        desk.click("exercise.L11.3");
        desk.click("predict.skip");
        CHECK(revealed(desk.shell) == "off");
        for (const char* chip : {"w1=mxfp6-e2m3", "w2=mxfp4", "w3=mxfp6-e2m3", "w4=mxfp6-e2m3"}) {
            CHECK((revealed(desk.shell) == "on") == (desk.passed("L11.3") != nullptr));
            set_field(desk.shell.lab()->fields(), chip);
            for (int i = 0; i < 4; ++i) {
                while (desk.shell.lab()->busy()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                desk.frame();
            }
        }
        REQUIRE(desk.passed("L11.3") != nullptr);
        CHECK(revealed(desk.shell) == "on");
        desk.key(ui::Key::r, true, true);
        CHECK(revealed(desk.shell) == "on");
        CHECK(field_text(*find_field(desk.shell.lab()->fields(), "w2")) == "mxfp8");
    }
    Desk again("lower", {1440, 900}, ProfileFolders(profile.path));
    CHECK(revealed(again.shell) == "on");
    again.click("exercise.L11.3");
    again.click("exercise.again");
    again.click("predict.skip");
    CHECK(revealed(again.shell) == "off");  // a new attempt begins without
}
