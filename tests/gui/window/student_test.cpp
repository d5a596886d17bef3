// A student's whole way, by keyboard alone: the tour, L1's four exercises, a break, the report.
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/gui/window/desk.h"

using fp8lab::test::Desk;

namespace {

auto shows(const std::string& probe) {
    return [probe](const Desk::Json& state) { return state["probes"].contains(probe); };
}

void take_the_tour(Desk& desk) {
    REQUIRE(desk.wait_for(shows("home.continue")));
    desk.key("Return");
    REQUIRE(desk.wait_for(shows("tour")));
    desk.key("2");
    desk.key("Right");
    desk.key("F1");
    REQUIRE(desk.wait_for(shows("help.card")));
    desk.key("Tab");
    desk.key("Escape");
    desk.key("F3");
    desk.key("F4");
    REQUIRE(desk.wait_for(shows("exercise.L1.1")));
}

// Opens it where it is not yet, and commits or starts.
void begin(Desk& desk, const std::string& exercise, const std::string& start) {
    if (!desk.probes()["probes"].contains(start)) {
        REQUIRE(desk.tab_to("exercise." + exercise));
        desk.key("Return");
    }
    REQUIRE(desk.wait_for(shows(start)));
    REQUIRE(desk.tab_to(start));
    desk.key("Return");
}

void check_passed(Desk& desk, const std::string& exercise) {
    const std::string file = "exercises/" + exercise + ".json";
    CHECK_MESSAGE(desk.wait_for([&](const auto&) { return desk.has_file(file); }), exercise);
}

}  // namespace

TEST_CASE("by keyboard alone: tour, the four exercises of L1 with a break, report") {
    Desk desk;
    desk.start();
    take_the_tour(desk);
    REQUIRE(desk.wait_for(shows("predict.number")));
    REQUIRE(desk.tab_to("predict.number"));
    desk.key("Left");
    begin(desk, "L1.1", "predict.commit");
    for (const char* bit : {"6", "2", "1"}) desk.key(bit);
    check_passed(desk, "L1.1");
    begin(desk, "L1.2", "exercise.start");
    for (const char* bit : {"6", "2", "1", "0"}) desk.key(bit);
    check_passed(desk, "L1.2");
    desk.close();

    desk.start();  // the next day
    REQUIRE(desk.wait_for(shows("home.continue")));
    desk.key("Return");
    REQUIRE(desk.wait_for([](const auto& state) { return state["lab"] == "bits"; }));
    desk.key("F4");
    begin(desk, "L1.3", "exercise.start");
    for (const char* bit : {"6", "2", "1"}) desk.key(bit);
    desk.key("F2");
    REQUIRE(desk.tab_to("bits.format0"));
    desk.key("Right");
    REQUIRE(desk.wait_for([](const auto& state) { return state["metrics"]["format"] == "e5m2"; }));
    desk.key("Escape");  // the ring gives the keys back to the lab
    for (const char* bit : {"5", "0"}) desk.key(bit);
    check_passed(desk, "L1.3");
    desk.key("F4");
    begin(desk, "L1.4", "exercise.start");
    desk.key("F2");
    REQUIRE(desk.tab_to("bits.specials"));
    for (int i = 0; i < 4 && desk.metric("max") != 448; ++i) desk.key("Left");
    check_passed(desk, "L1.4");

    desk.key("ctrl+e");
    REQUIRE(desk.wait_for(shows("export.save")));
    REQUIRE(desk.tab_to("export.what"));
    desk.key("Right");
    REQUIRE(desk.tab_to("export.save"));
    desk.key("Return");
    CHECK(desk.wait_for([&](const auto&) { return desk.has_export(".html"); }));
    for (const char* exercise : {"L1.1", "L1.2", "L1.3", "L1.4"})
        CHECK(desk.check(std::string("exercises/") + exercise + ".json") == 0);
    desk.close();
}
