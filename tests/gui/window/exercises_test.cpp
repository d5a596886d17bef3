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

TEST_CASE("L6: a learner predicts a share, spreads the rows, passes, and the evidence stands") {
    Desk desk;
    begin(desk, "blocks", "L6.2");
    CHECK_FALSE(desk.probes()["probes"].contains("blocks.magnitude"));
    desk.drag("predict.number", 60, 0);
    desk.click("predict.commit");
    REQUIRE(desk.wait_for([](const auto& state) { return state["probes"].contains("blocks.magnitude"); }));
    CHECK(desk.metric("tensor.underflow_pct") < 3);
    desk.click("panel.Explore");
    desk.drag("row_spread", -120, 0);
    desk.click("exercise.strip");  // not far enough yet
    desk.click("exercise.hint");
    CHECK_FALSE(desk.has_file("exercises/L6.2.json"));
    desk.click("panel.Explore");
    desk.drag("row_spread", 40, 0);
    REQUIRE(desk.wait_for([&](const auto&) { return desk.has_file("exercises/L6.2.json"); }));
    desk.click("panel.Exercises");
    check_passed(desk, "L6.2");
}

TEST_CASE("L6: an answer typed for each price passes the price tag") {
    Desk desk;
    begin(desk, "blocks", "L6.3");
    desk.click("exercise.start");
    for (const auto& [name, bits] : std::vector<std::pair<std::string, std::string>>{
             {"mxfp8", "8.25"}, {"nvfp4", "4.5"}, {"1x128", "8.25"}, {"128x128", "8.002"}}) {
        desk.click("answer." + name);
        desk.type(bits);
        desk.key("Return");
    }
    check_passed(desk, "L6.3");
}

TEST_CASE("L7: a learner skips the prediction, chooses other dice, passes, and the evidence stands") {
    Desk desk;
    begin(desk, "adding", "L7.5");
    desk.click("predict.skip");
    REQUIRE(desk.wait_for([](const auto& state) { return state["probes"].contains("adding.dice"); }));
    CHECK(desk.metric("integer.tensor_off_grid_pct") > 70);
    desk.click("panel.Explore");
    desk.click("rounding");
    desk.click("rounding.3");  // noise of constant size: on the grid, and never flips
    CHECK_FALSE(desk.has_file("exercises/L7.5.json"));
    desk.click("rounding");
    desk.click("rounding.1");
    REQUIRE(desk.wait_for([&](const auto&) { return desk.has_file("exercises/L7.5.json"); }));
    CHECK(desk.read_json("exercises/L7.5.json")["prediction"]["skipped"] == true);
    desk.click("panel.Exercises");
    check_passed(desk, "L7.5");
}
