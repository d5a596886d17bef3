// kill -9 of the real window: what it kept is there, and the next start asks one question at most.
#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/gui/window/desk.h"

using fp8lab::test::Desk;

namespace {

bool shows(const Desk& desk, const char* control) { return desk.probes()["probes"].contains(control); }

}  // namespace

TEST_CASE("killed before the Nth write, fsync or rename of what it keeps, the window opens again") {
    Desk desk;
    for (int at = 1; at <= 9; ++at) {
        CAPTURE(at);
        const std::string fault = "FAULT_FOLDER=" + desk.home() + " FAULT_AT=" + std::to_string(at) +
                                  " FAULT=" + (at % 2 == 0 ? "torn" : "kill") + " LD_PRELOAD=" FP8LAB_SHIM;
        const std::string press =
            "; (xdotool keydown ctrl+t; sleep 0.2; xdotool keyup ctrl+t; xdotool keydown 6; "
            "sleep 0.2; xdotool keyup 6) 2>/dev/null; wait";
        const std::string command = "env " + fault +
                                    " timeout -s KILL 4 " FP8LAB_BINARY
                                    " --lab bits 2>/dev/null & sleep 2.5; xdotool search --class fp8lab "
                                    "windowfocus --sync 2>/dev/null" +
                                    press;
        CHECK(system(command.c_str()) >= 0);
        desk.start();
        if (shows(desk, "recovery.restore")) {
            desk.key("Return");
            CHECK(desk.wait_for([](const auto& state) { return state["lab"] == "bits"; }));
        }
        CHECK_FALSE(shows(desk, "recovery"));
        CHECK_FALSE(desk.has_file("settings.json.damaged"));
        if (desk.has_file("settings.json")) CHECK(desk.settings().contains("checksum"));
        desk.close();
    }
    CHECK(desk.has_file("settings.json"));
}

TEST_CASE("a second window on the same profile reads only, and leaves all to the first") {
    Desk desk;
    desk.start({"--lab", "bits"});
    desk.click("bits.bit6");
    CHECK(desk.has_file("journal.jsonl"));
    const auto before = desk.read_text("journal.jsonl");
    CHECK(system("timeout -s TERM 4 " FP8LAB_BINARY " --lab ruler 2>/dev/null") >= 0);
    CHECK(desk.read_text("journal.jsonl") == before);
    desk.close();
    CHECK_FALSE(desk.has_file("journal.jsonl"));
}
