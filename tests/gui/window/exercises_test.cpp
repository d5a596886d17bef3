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
