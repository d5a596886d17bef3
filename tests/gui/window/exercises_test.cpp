// Learners' ways through later exercises, by real events: read, predict, act, pass, see the evidence, and
// have the file that it left checked.
#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "tests/gui/window/desk.h"

using fp8lab::test::Desk;

namespace {

// Opens the exercise, commits or skips its prediction.
void begin(Desk& desk, const std::string& lab, const std::string& exercise) {
    desk.start({"--lab", lab});
    desk.click("panel.Exercises");
    desk.scroll_panel_to("exercise." + exercise);  // below the first, which is open
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

TEST_CASE("L1: a code typed right after the click on its field is there whole, and flips no bit") {
    Desk desk;
    desk.start({"--lab", "bits"});
    desk.click("panel.Explore");
    desk.click_and_type("bits.entry", "0x15");
    CHECK(desk.metric("code") == 126);
    desk.key("Return");
    CHECK(desk.wait_for([](const auto& state) { return state["metrics"]["code"] == 0x15; }));
    desk.close();
}

TEST_CASE("L4: a learner sketches, drags the window nine binades, loads a heavy tail, and brings it back") {
    Desk desk;
    begin(desk, "window", "L4.2");
    CHECK(desk.probes()["probes"].contains("cover.margin"));
    CHECK(desk.probes()["probes"].contains("window.handle"));
    for (const char* knob : {"predict.knob0", "predict.knob1", "predict.knob2", "predict.knob3"})
        desk.drag(knob, 0, -90);
    desk.drag("predict.knob7", 0, 60);
    desk.click("predict.commit");
    const auto binade = [&] {  // px
        REQUIRE(desk.wait_for([](const auto& state) { return state["axes"].contains("window.histogram"); }));
        const auto state = desk.probes();
        const auto box = state["probes"]["window.histogram"].template get<std::vector<double>>();
        const auto axes = state["axes"]["window.histogram"].template get<std::vector<double>>();
        return (box[2] - box[0]) / std::log2(axes[1] / axes[0]);
    };
    desk.drag("window.handle", static_cast<int>(9.3 * binade()), 0);
    const auto window_is_above = [&](int binades) {  // of what it is at a margin of 0
        const bool reached = desk.wait_for([&](const auto& state) {
            const double top = state["metrics"]["window_top"], amax = state["metrics"]["reference_amax"];
            return std::abs(std::log2(top / amax) - binades) < 0.01;
        });
        CAPTURE(std::log2(desk.metric("window_top") / desk.metric("reference_amax")));
        REQUIRE(reached);
    };
    window_is_above(9);
    CHECK(desk.metric("sqnr_db") > desk.metric("best_sqnr_db") - 0.5);
    CHECK_FALSE(desk.probes()["probes"].contains("exercise.evidence"));
    desk.click("panel.Explore");
    desk.click("tensor");
    desk.click("tensor.1");  // log-normal
    REQUIRE(desk.wait_for([](const auto& state) { return state["metrics"]["underflow_pct"] > 50; }));
    desk.drag("window.handle", static_cast<int>(-9.3 * binade()), 0);
    window_is_above(0);
    CHECK(desk.metric("underflow_pct") == desk.metric("least_underflow_pct"));
    desk.click("panel.Exercises");
    check_passed(desk, "L4.2");
}

TEST_CASE("L4: a drag that is over within a frame moves the window as far as a slow one") {
    Desk desk;
    desk.start({"--lab", "window"});
    REQUIRE(desk.wait_for([](const auto& state) { return state["axes"].contains("window.histogram"); }));
    const double before = desk.metric("window_top");
    desk.drag_at_once("window.handle", 100, 0);
    CHECK(desk.wait_for([&](const auto& state) { return state["metrics"]["window_top"] > 1.9 * before; }));
    desk.close();
}

TEST_CASE("L5: stepped through by key, the window gives the trace of numerics.md 3.2") {
    struct Row {
        double amax, scale, scaled, next;
    };
    constexpr std::array<Row, 9> kTrace = {
        Row{2, 1, 2, 224},          Row{4, 224, 896, 112},    Row{3, 112, 336, 112},
        Row{100, 112, 11200, 4.48}, Row{2, 4.48, 8.96, 4.48}, Row{2, 4.48, 8.96, 4.48},
        Row{2, 4.48, 8.96, 4.48},   Row{2, 4.48, 8.96, 224},  Row{2, 224, 448, 224}};
    Desk desk;
    desk.start({"--lab", "delayed"});
    desk.click("delayed.first");
    for (std::size_t t = 0; t < kTrace.size(); ++t) {
        CAPTURE(t);
        const bool came = desk.wait_for(
            [&](const auto& state) { return state["metrics"]["step.t"] == static_cast<double>(t); });
        REQUIRE_MESSAGE(came, desk.metric("step.t") << " instead of " << t);
        CHECK(desk.metric("step.amax") == kTrace[t].amax);
        CHECK(desk.metric("step.scale_used") == doctest::Approx(kTrace[t].scale).epsilon(1e-7));
        CHECK(desk.metric("step.amax_scaled") == doctest::Approx(kTrace[t].scaled).epsilon(1e-7));
        CHECK(desk.metric("step.scale_next") == doctest::Approx(kTrace[t].next).epsilon(1e-7));
        desk.key("period");
    }
    desk.close();
}

TEST_CASE("L6: a learner predicts a share, spreads the rows, passes, and the evidence stands") {
    Desk desk;
    begin(desk, "blocks", "L6.2");
    CHECK(desk.probes()["probes"].contains("cover.schemes"));
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
             {"mxfp8", "8.25"}, {"nvfp4", "4.5"}, {"1x128", "8.25"}}) {
        desk.click_and_type("answer." + name, bits);
        desk.key("Return");
    }
    desk.click("answer.128x128");
    desk.type("8.002");
    desk.key("Return");
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

TEST_CASE("L1: a click on the toast does nothing to what lies under it, and Do it again is taken back") {
    Desk desk;
    begin(desk, "bits", "L1.1");
    desk.click("predict.skip");
    for (const char* bit : {"bits.bit6", "bits.bit2", "bits.bit1"}) desk.click(bit);
    const auto shows = [&](const char* probe, bool is) {
        return desk.wait_for([&](const auto& state) { return state["probes"].contains(probe) == is; });
    };
    REQUIRE(shows("toast.close", true));
    const auto rows = [&] {
        auto out = Desk::Json::object();
        const auto probes = desk.probes()["probes"];
        for (const auto& [name, rect] : probes.items())
            if (name.starts_with("exercise.")) out[name] = rect;
        return out;
    };
    REQUIRE(shows("exercise.evidence", true));
    const auto before = rows();
    desk.click("toast.close");
    REQUIRE(shows("toast", false));
    CHECK(rows() == before);
    desk.click("exercise.again");
    REQUIRE(shows("exercise.evidence", false));
    REQUIRE(shows("toast.undo", true));
    desk.click("toast.undo");
    CHECK(shows("exercise.evidence", true));
    desk.click("exercise.again");
    REQUIRE(shows("exercise.evidence", false));
    desk.key("ctrl+z");
    CHECK(shows("exercise.evidence", true));
    CHECK(shows("toast", false));
    desk.close();
}
