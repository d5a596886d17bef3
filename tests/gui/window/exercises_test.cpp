// Learners' ways through one exercise of each lab, by real events: read, predict, act, pass, see the
// evidence, and have the file that it left checked.
#include <doctest/doctest.h>

#include "tests/gui/window/desk.h"

using fp8lab::test::Desk;

namespace {

// Opens the exercise, commits or skips its prediction.
void begin(Desk& desk, const std::string& lab, const std::string& exercise) {
    desk.start({"--lab", lab});
    desk.click("panel.Exercises");
    desk.click("exercise." + exercise);
}

void type_answer(Desk& desk, const std::string& name, const std::string& text) {
    desk.click("answer." + name);
    desk.key("ctrl+a");
    desk.type(text);
    desk.key("Return");
}

void check_passed(Desk& desk, const std::string& exercise) {
    CHECK(desk.wait_for([](const auto& state) { return state["probes"].contains("exercise.evidence"); }));
    const std::string file = "exercises/" + exercise + ".json";
    REQUIRE(desk.has_file(file));
    CHECK(desk.read_json(file)["conditions"].size() >= 1);
    CHECK(desk.check(file) == 0);
    desk.close();
}

}  // namespace

TEST_CASE("L1: a learner predicts, flips bits, passes, and the evidence stands") {
    Desk desk;
    begin(desk, "bits", "L1.1");
    CHECK_FALSE(desk.probes()["probes"].contains("bits.bit0"));
    desk.drag("predict.number", -80, 0);
    desk.click("predict.commit");
    for (const char* bit : {"bits.bit6", "bits.bit2", "bits.bit1"}) desk.click(bit);
    check_passed(desk, "L1.1");
}

TEST_CASE("L3: a learner draws the error, reads the teeth with the marker, passes, and the evidence stands") {
    Desk desk;
    begin(desk, "error", "L3.1");
    CHECK_FALSE(desk.probes()["probes"].contains("error.marker"));
    desk.drag("predict.knob0", 0, 80);
    desk.drag("predict.knob4", 0, -60);
    desk.click("predict.commit");
    desk.drag("error.marker", 40, 0);
    type_answer(desk, "e4m3", "1/16");
    CHECK_FALSE(desk.has_file("exercises/L3.1.json"));
    type_answer(desk, "e4m3", "1/17");
    type_answer(desk, "e5m2", "11.1 %");
    check_passed(desk, "L3.1");
}
