// The real window under Xvfb, moved by real events. Each test starts its own display and its own fp8lab.
#include <doctest/doctest.h>

#include "tests/gui/window/desk.h"

using fp8lab::test::Desk;

TEST_CASE("the window opens on home, a click opens a lab, and its settings are there at the next start") {
    Desk desk;
    desk.start();
    CHECK(desk.probes()["lab"] == "");
    desk.click("home.bits");
    CHECK(desk.wait_for([](const auto& state) { return state["lab"] == "bits"; }));
    desk.key("ctrl+t");
    desk.key("ctrl+0");
    CHECK(desk.wait_for([](const auto& state) { return state["lab"] == ""; }));
    desk.close();
    const auto settings = desk.settings();
    CHECK(settings["last_lab"] == "bits");
    CHECK(settings["theme"] == "light");

    desk.start();
    CHECK(desk.probes()["probes"].contains("home.continue"));
    desk.key("Return");
    CHECK(desk.wait_for([](const auto& state) { return state["lab"] == "bits"; }));
    desk.close();
}

TEST_CASE("unreadable settings do not keep the window from opening") {
    Desk desk;
    desk.write_settings("{ not json");
    desk.start();
    CHECK(desk.probes()["probes"].contains("rail.home"));
    desk.close();
    CHECK(desk.has_file("settings.json.bak"));
}
