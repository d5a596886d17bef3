// Keys and mouse as the rest of the code asks for them, whatever Dear ImGui's version calls them.
#include "labs/ui/input.h"

#include <doctest/doctest.h>

#include <set>

#include "tests/gui/gui.h"

namespace fp8lab::ui {
namespace {

std::set<Key> pressed_keys() {
    std::set<Key> keys;
    for (const Key key : all_keys())
        if (pressed(key, false)) keys.insert(key);
    return keys;
}

}  // namespace

TEST_CASE("each key that is fed is pressed in that frame, no other key is, and none in the next frame") {
    test::Gui gui;
    const auto nothing = [](Context&) {};
    CHECK(std::set<Key>(all_keys().begin(), all_keys().end()).size() == all_keys().size());
    for (const Key key : all_keys()) {
        CAPTURE(static_cast<int>(key));
        feed_key(key, true);
        gui.raw_frame([&](Context&) { CHECK(pressed_keys() == std::set{key}); });
        gui.raw_frame([&](Context&) { CHECK(pressed_keys().empty()); });
        feed_key(key, false);
        gui.raw_frame(nothing);
    }
    CHECK_FALSE(pressed(Key::none));
}

TEST_CASE("a key that is held repeats where that is asked for") {
    test::Gui gui;
    int pressed_once = 0, repeated = 0;
    feed_key(Key::right, true);
    for (int i = 0; i < 60; ++i) {
        gui.raw_frame([&](Context&) {
            pressed_once += pressed(Key::right, false) ? 1 : 0;
            repeated += pressed(Key::right) ? 1 : 0;
        });
    }
    CHECK(pressed_once == 1);
    CHECK(repeated > 5);
}

TEST_CASE("modifiers, mouse and characters that are fed arrive in that frame") {
    test::Gui gui;
    const ImGuiIO& io = ImGui::GetIO();
    feed_modifiers(true, false, true);
    feed_mouse(120, 80);
    feed_button(1, true);
    feed_wheel(-2);
    feed_text("a\u00fc");
    gui.raw_frame([&](Context&) {
        CHECK(io.KeyCtrl);
        CHECK_FALSE(io.KeyShift);
        CHECK(io.KeyAlt);
        CHECK(io.MousePos.x == 120);
        CHECK(io.MousePos.y == 80);
        CHECK(ImGui::IsMouseClicked(ImGuiMouseButton_Right));
        CHECK(io.MouseWheel == -2);
        REQUIRE(io.InputQueueCharacters.Size == 2);
        CHECK(io.InputQueueCharacters[1] == 0xFC);
    });
    CHECK_FALSE(input_waits());
    feed_modifiers(false);
    feed_button(1, false);
    gui.raw_frame([&](Context&) {
        CHECK_FALSE(io.KeyCtrl);
        CHECK(io.MouseWheel == 0);
        CHECK(ImGui::IsMouseReleased(ImGuiMouseButton_Right));
        CHECK(io.InputQueueCharacters.empty());
    });
}

}  // namespace fp8lab::ui
