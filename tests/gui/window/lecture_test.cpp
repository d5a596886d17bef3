// A lecture through the real window, by keys alone.
#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "tests/gui/window/desk.h"

using fp8lab::test::Desk;

namespace {

bool says(const Desk::Json& state, const std::string& probe, const std::string& part) {
    return state.contains("words") && state["words"].contains(probe) &&
           state["words"][probe].get<std::string>().find(part) != std::string::npos;
}

void check_says(Desk& desk, const std::string& probe, const std::string& part) {
    const bool said = desk.wait_for([&](const auto& state) { return says(state, probe, part); });
    CHECK_MESSAGE(said, probe << " never said '" << part << "'");
}

}  // namespace

TEST_CASE("a lecture by keys: L4, L5, L8, votes, freeze, compare, and back to the desk") {
    Desk desk;
    desk.start({"--lab", "bits", "--present", "window-history-training"});
    check_says(desk, "present.scene.1", "on");
    for (const char* vote : {"1", "4", "a", "c"}) desk.key(vote);
    check_says(desk, "present.votes.A", "2");
    desk.key("BackSpace");
    check_says(desk, "present.votes.C", "0");
    desk.key("Return");
    check_says(desk, "present.sentence", "headroom is free");
    for (int i = 0; i < 3; ++i) desk.key("Up");
    check_says(desk, "present.number.2", "31.5 dB");
    std::this_thread::sleep_for(std::chrono::seconds(2));  // until then B could be meant as a vote
    desk.key("b");
    check_says(desk, "present.state", "B");
    desk.key("b");
    desk.key("f");
    check_says(desk, "present.state", "frozen");
    desk.key("f");
    desk.key("Next");  // as a clicker sends it
    check_says(desk, "present.scene.2", "on");
    desk.key("Next");
    check_says(desk, "present.vote_hint", "no vote yet");
    desk.key("Next");
    check_says(desk, "present.sentence", "became zero");
    desk.key("Next");
    desk.key("1");
    desk.key("Next");
    check_says(desk, "present.number.0", "11");
    std::this_thread::sleep_for(std::chrono::seconds(2));
    desk.key("b");
    check_says(desk, "present.number.0", "0");
    desk.key("Next");
    check_says(desk, "present.scene.4", "on");
    desk.key("1");
    desk.key("Next");  // L8 trains before their eyes
    check_says(desk, "present.sentence", "of a gradient’s elements became zero");
    CHECK(desk.wait_for([](const auto& state) { return says(state, "present.number.0", "34.6 %"); },
                        std::chrono::seconds(120)));  // the whole training, on cores that others use too
    for (int i = 0; i < 3; ++i) {  // the presenter's window opens, and closes by a key that is pressed in it
        desk.focus("FP8 Lab");
        desk.key("n");
        REQUIRE_MESSAGE(desk.wait_for([](const auto& state) { return state["notes"] == true; }), i);
        desk.focus("FP8 Lab: notes");
        desk.key_down("n");
        REQUIRE(desk.wait_for([](const auto& state) { return state["notes"] == false; }));
        desk.key_up("n");
    }
    desk.focus("FP8 Lab");
    desk.key("Escape");
    CHECK(desk.wait_for(
        [](const auto& state) { return state["probes"].contains("panel.reset") && state["lab"] == "bits"; }));
    desk.close();
}
