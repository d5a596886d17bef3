// What a newcomer does first, through the real window and by keyboard alone.
#include <doctest/doctest.h>

#include "tests/gui/window/desk.h"

using fp8lab::test::Desk;

namespace {

auto shows(const std::string& probe) {
    return [probe](const Desk::Json& state) { return state["probes"].contains(probe); };
}
auto hides(const std::string& probe) {
    return [probe](const Desk::Json& state) { return !state["probes"].contains(probe); };
}

}  // namespace

TEST_CASE("a first start: the tour from Enter to its end, by keys, and the next start does not offer it") {
    Desk desk;
    desk.start();
    REQUIRE(desk.wait_for(shows("home.continue")));
    desk.key("Return");
    REQUIRE(desk.wait_for(shows("tour")));
    CHECK(desk.probes()["lab"] == "bits");
    const double before = desk.metric("value");
    desk.key("2");
    CHECK(desk.wait_for([&](const auto& state) { return state["metrics"]["value"] != before; }));
    desk.key("Right");
    CHECK(desk.wait_for([](const auto& state) { return state["metrics"]["format"] == "e5m2"; }));
    desk.key("F1");
    CHECK(desk.wait_for(shows("help.card")));
    CHECK(desk.wait_for(hides("tour")));
    desk.key("Tab");
    desk.key("Escape");
    CHECK(desk.wait_for(shows("tour")));
    desk.key("F3");
    CHECK(desk.wait_for(hides("tour")));
    CHECK(desk.wait_for(shows("toast")));
    CHECK(desk.wait_for(hides("toast")));   // by itself: nothing is pressed or moved meanwhile
    CHECK(desk.wait_for([&](const auto&) {  // kept a moment after it rests
        return desk.has_file("settings.json") && desk.settings()["toured"] == true;
    }));
    desk.close();

    desk.start();
    CHECK(desk.wait_for(shows("home.continue")));  // L1, where one was
    desk.key("Return");
    CHECK(desk.wait_for([](const auto& state) { return state["lab"] == "bits"; }));
    CHECK_FALSE(desk.probes()["probes"].contains("tour"));
    desk.close();
}

TEST_CASE(
    "palette, glossary, keys and help open and close by real keys, and the palette goes where it is told") {
    Desk desk;
    desk.start();
    desk.key("ctrl+k");
    REQUIRE(desk.wait_for(shows("palette")));
    desk.type("swamping");
    desk.key("Return");
    REQUIRE(desk.wait_for(shows("glossary")));
    CHECK(desk.wait_for(shows("glossary.figure")));
    desk.key("Escape");
    CHECK(desk.wait_for(hides("glossary")));
    desk.key("question");
    CHECK(desk.wait_for(shows("keys")));
    desk.click("keys.help");
    CHECK(desk.wait_for(shows("help")));
    desk.key("Escape");
    CHECK(desk.wait_for(hides("help")));
    desk.key("ctrl+k");
    desk.type("L5.3");
    desk.key("Return");
    CHECK(desk.wait_for([](const auto& state) { return state["lab"] == "delayed"; }));
    desk.close();
}
