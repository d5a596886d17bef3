// A learner's way through an exercise in the panel, without a display.
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <thread>
#include <tuple>

#include "core/files/files.h"
#include "labs/grading/recheck.h"
#include "tests/gui/screens/shell_desk.h"

using namespace fp8lab;
using test::Gui;

namespace {

struct Desk : test::ShellDesk {
    explicit Desk(const char* lab, ImVec2 size = {1440, 900}, const ProfileFolders& folders = {})
        : ShellDesk(size, test::explored(), folders) {
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

TEST_CASE(
    "predict, act, pass: the answer is covered until the prediction, and evidence is kept that stands") {
    Desk desk("bits");
    CHECK(desk.shows("bits.bit0"));
    CHECK(desk.shows("cover.codes"));
    const auto before = desk.shell.lab()->state();
    desk.click("bits.bit0");
    desk.key(ui::Key::digit_3);
    CHECK(desk.shell.lab()->state() == before);  // not before the prediction
    desk.drag("predict.number", -60, 0);
    desk.click("predict.commit");
    desk.frame();
    REQUIRE_FALSE(desk.shows("cover.codes"));
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

TEST_CASE("L16: an exercise that is begun or skipped keeps the deal and what was said of its cases") {
    Desk desk("clinic");
    Lab& lab = *desk.shell.lab();
    const auto text_of = [&](const char* field) { return field_text(*find_field(lab.fields(), field)); };
    for (const char* assignment : {"deal=10", "diagnosis_c=4", "treatment_c=margin"})
        set_field(lab.fields(), assignment);
    desk.frame();
    desk.click("predict.skip");
    REQUIRE(desk.shell.exercises().under_way(lab));
    CHECK(text_of("deal") == "10");
    CHECK(text_of("diagnosis_c") == "4");
    CHECK(text_of("first_c") == "none");
    CHECK(text_of("treatment_c") == "margin");
    desk.click("panel.Explore");
    desk.click("panel.reset");  // takes it away, and says so
    CHECK(text_of("diagnosis_c") == "none");
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
        CHECK_FALSE(number.shows("predict.commit"));
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

namespace {

void pass_l11(Desk& desk) {
    desk.click("predict.skip");
    for (const char* bit : {"bits.bit6", "bits.bit2", "bits.bit1"}) desk.click(bit);
    REQUIRE(desk.passed("L1.1") != nullptr);
}

}  // namespace

TEST_CASE("the toast of a pass lies over the panel: it moves nothing, goes by itself, and takes its clicks") {
    Desk desk("bits", {1024, 640});  // low, so that the list lies under it
    pass_l11(desk);
    desk.frame();
    REQUIRE(desk.shows("toast"));
    const auto rows = [&] {
        std::map<std::string, float> out;
        for (const auto& [name, item] : desk.gui.context.probes.items)
            if (name.starts_with("exercise.") || name.starts_with("panel.")) out[name] = item.rect.y0;
        return out;
    };
    const auto with = rows();
    const Rect card = desk.gui.rect("toast");
    // Whatever lies under it: a click at any of its points changes nothing but the toast.
    const Evidence before = *desk.passed("L1.1");
    int under = 0;
    for (const auto& [name, item] : desk.gui.context.probes.items)
        if (name.starts_with("exercise.") && item.rect.y0 < card.y1 && item.rect.y1 > card.y0 &&
            item.rect.x0 < card.x1)
            ++under;
    CHECK(under > 0);
    for (const Point at : {Point{card.x0 + 4, card.y0 + 4}, Point{(card.x0 + card.x1) / 2, card.y1 - 4}}) {
        if (!desk.shows("toast")) desk.shell.say("Again", "and again");
        desk.frame();
        desk.frame();
        desk.gui.move(at);
        desk.frame();
        desk.gui.mouse(true);
        desk.frame();
        desk.gui.mouse(false);
        desk.frame();
        desk.frame();
        CHECK_FALSE(desk.shows("toast"));
        CHECK(desk.shows("exercise.evidence"));
        CHECK(rows() == with);
    }
    CHECK(desk.passed("L1.1")->at == before.at);
    // And without a click, nor any input: rest() asks for the frame in which it is gone.
    desk.shell.say("Once more", "by itself");
    desk.frame();
    REQUIRE(desk.shows("toast"));
    const double due = desk.shell.rest(100);
    CHECK(due <= 8);
    CHECK_FALSE(desk.gui.context.wants_redraw);
    desk.shell.rest(100 + due);
    CHECK(desk.gui.context.wants_redraw);
    desk.frame();
    CHECK_FALSE(desk.shows("toast"));
    CHECK(rows() == with);
}

TEST_CASE("Do it again is undone by its toast or by Ctrl Z: the verdict and the evidence are there again") {
    for (const bool by_key : {false, true}) {
        Desk desk("bits");
        pass_l11(desk);
        desk.click("toast.close");
        desk.click("exercise.why");
        desk.type("NaN takes two");
        const auto state = desk.shell.lab()->state();
        desk.click("exercise.again");
        REQUIRE(desk.shows("predict.commit"));
        CHECK_FALSE(desk.shows("exercise.evidence"));
        REQUIRE(desk.shows("toast.undo"));
        if (by_key)
            desk.key(ui::Key::z, true);
        else
            desk.click("toast.undo");
        desk.frame();
        CHECK(desk.shows("exercise.evidence"));
        CHECK_FALSE(desk.shows("predict.commit"));
        CHECK_FALSE(desk.shows("toast"));
        CHECK(desk.shell.lab()->state() == state);
        // Begun, and then undone: twice, over the start and over the button.
        desk.click("exercise.again");
        desk.click("predict.skip");
        desk.click("bits.bit0");
        CHECK(desk.shows("exercise.conditions"));
        for (int i = 0; i < 3; ++i) desk.key(ui::Key::z, true);
        desk.frame();
        CHECK(desk.shows("exercise.evidence"));
        CHECK(desk.passed("L1.1")->explanation == "NaN takes two");
        // Passed anew: the words stay.
        desk.click("exercise.again");
        pass_l11(desk);
        CHECK(desk.passed("L1.1")->explanation == "NaN takes two");
    }
}

TEST_CASE(
    "Reset all in an attempt, and Start over another attempt, are undone: the trail goes on where it was") {
    Desk desk("bits");
    desk.click("predict.skip");
    desk.click("bits.bit6");
    desk.click("bits.bit2");
    desk.click("panel.reset");
    REQUIRE(desk.shows("toast.undo"));
    desk.key(ui::Key::z, true);
    desk.frame();
    CHECK_FALSE(desk.shows("toast.undo"));
    desk.click("exercise.L1.2");
    desk.click("exercise.start");
    REQUIRE(desk.shows("toast.undo"));
    desk.click("toast.undo");
    desk.click("bits.bit1");
    REQUIRE(desk.passed("L1.1") != nullptr);
    CHECK(desk.passed("L1.1")->groups.size() == 3);
    const auto file = desk.shell.exercises().progress().file("L1.1");
    CHECK(recheck(parse_evidence(read_text(file), file.string()), false).stands());
}

TEST_CASE("an undo that goes too far is undone by redo: the attempt comes back whole") {
    Desk desk("bits");
    desk.click("predict.skip");
    desk.click("bits.bit6");
    desk.click("bits.bit2");
    for (int i = 0; i < 6; ++i) desk.key(ui::Key::z, true);
    desk.frame();
    CHECK(desk.shows("exercise.start"));  // before the start; what was predicted is kept, and not asked again
    CHECK_FALSE(desk.shows("predict.commit"));
    for (int i = 0; i < 6; ++i) desk.key(ui::Key::z, true, true);
    desk.frame();
    CHECK_FALSE(desk.shows("exercise.start"));
    CHECK(desk.shows("exercise.conditions"));
    desk.click("bits.bit1");
    REQUIRE(desk.passed("L1.1") != nullptr);
}

TEST_CASE("a prediction covers what answers it and nothing else, in every exercise at its start") {
    std::size_t asked = 0;
    for (const LabEntry& entry : lab_registry()) {
        Desk desk(entry.id.data());
        const auto exercises = desk.shell.lab()->exercises();
        for (std::size_t i = 0; i < exercises.size(); ++i) {
            const Exercise& exercise = exercises[i];
            if (exercise.predict.empty()) continue;
            ++asked;
            CAPTURE(exercise.id);
            begin_exercise(*desk.shell.lab(), exercise);
            desk.shell.exercises().select(*desk.shell.lab(), i);
            for (int frame = 0; frame < 4; ++frame) {
                while (desk.shell.lab()->busy() && !desk.shell.lab()->live())
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                desk.frame();
            }
            CHECK(desk.shows("predict.skip"));
            for (const std::string& name : exercise.covers) CHECK_MESSAGE(desk.shows("cover." + name), name);
            std::size_t covers = 0;
            for (const auto& [name, item] : desk.gui.context.probes.items)
                covers += name.starts_with("cover.") ? 1 : 0;
            CHECK(covers == exercise.covers.size());
        }
    }
    CHECK(asked > 0);
}

TEST_CASE("what the start of L9.4 and W.1 hides is shown once they are passed") {
    for (const auto& [lab, index, field, shown] :
         {std::tuple{"speed", 3U, "show_amdahl", "on"}, {"workbench", 0U, "covered", "off"}}) {
        Desk desk(lab);
        CAPTURE(lab);
        Lab& on = *desk.shell.lab();
        const Exercise& exercise = on.exercises()[index];
        desk.shell.exercises().select(on, index);
        desk.frame();
        desk.click("predict.skip");
        const auto value = [&] { return field_text(*find_field(on.fields(), field)); };
        CHECK(value() != shown);
        const auto settle = [&] {
            for (int i = 0; i < 4; ++i) {
                while (on.busy()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                desk.frame();
            }
        };
        settle();
        for (const Event& event : exercise.solver) {
            if (event.kind == Event::Kind::set) set_field(on.fields(), event.name + "=" + event.value);
            if (event.kind == Event::Kind::answer) {
                desk.click("answer." + event.name);
                desk.type(event.value);
            }
            settle();
        }
        REQUIRE(desk.passed(exercise.id) != nullptr);
        CHECK(value() == shown);
    }
}

TEST_CASE("the list of conditions is there before the start, during the attempt and after the pass") {
    {
        Desk desk("bits");
        desk.click("exercise.L1.2");
        desk.frame();
        CHECK(desk.shows("exercise.conditions"));
        CHECK(desk.shows("exercise.start"));
        desk.click("exercise.start");
        CHECK(desk.shows("exercise.conditions"));
        for (const char* bit : {"bits.bit6", "bits.bit2", "bits.bit1", "bits.bit0"}) desk.click(bit);
        REQUIRE(desk.passed("L1.2") != nullptr);
        CHECK(desk.shows("exercise.conditions"));
    }
    // Where the conditions name the answer they come after the prediction.
    Desk tells("delayed");
    tells.shell.exercises().select(*tells.shell.lab(), 2);
    tells.gui.context.probes.items.clear();
    tells.frame();
    CHECK(tells.shows("predict.commit"));
    CHECK_FALSE(tells.shows("exercise.conditions"));
    tells.click("predict.skip");
    CHECK(tells.shows("exercise.conditions"));
}
