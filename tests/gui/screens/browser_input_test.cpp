// Keys as a browser names them, and fingers as a mouse.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "app/desk/browser_keys.h"
#include "app/desk/touch.h"
#include "labs/ui/input.h"
#include "tests/gui/gui.h"

using namespace fp8lab;

namespace {

int code(ui::Key key) { return static_cast<int>(key); }

// A window of one frame after the other, whose one control, the left half, holds the mouse while it is pressed.
struct Screen {
    test::Gui gui{{400, 400}, Theme::dark, 1};
    InputFeed feed;
    Touch touch;
    float wheel = 0;
    std::vector<std::string> seen;

    void frame() {
        feed.feed_keys(false);
        const bool holds = ImGui::GetIO().MouseDown[0] && ImGui::GetIO().MouseClickedPos[0].x < 200;
        wheel += touch.wheel(holds, 100, feed);
        feed.feed_mouse(false);
        ImGui::NewFrame();
        const ImGuiIO& io = ImGui::GetIO();
        if (ImGui::IsMouseClicked(0)) seen.push_back("press " + place(io.MousePos));
        if (ImGui::IsMouseReleased(0)) seen.push_back("release " + place(io.MousePos));
        ImGui::Render();
    }
    void frames(int count) {
        for (int i = 0; i < count; ++i) frame();
    }
    static std::string place(ImVec2 at) {
        return std::to_string(static_cast<int>(at.x)) + "," + std::to_string(static_cast<int>(at.y));
    }
    void put(std::vector<Touch::Finger> fingers) { touch.changed(fingers, true, feed); }
    void move(std::vector<Touch::Finger> fingers) { touch.changed(fingers, false, feed); }
};

}  // namespace

TEST_CASE("a key is the letter that it types, else its place on a US keyboard") {
    CHECK(key_of("z", "KeyY", false) == code(ui::Key::z));  // a German keyboard
    CHECK(key_of("Z", "KeyY", true) == code(ui::Key::z));
    CHECK(key_of("я", "KeyZ", false) == code(ui::Key::z));  // a Russian one has no Latin letters
    CHECK(key_of("1", "Digit1", false) == code(ui::Key::digit_1));
    CHECK(key_of("!", "Digit1", true) == code(ui::Key::digit_1));
    CHECK(key_of("&", "Digit1", false) == code(ui::Key::digit_1));  // a French one
    CHECK(key_of("-", "Slash", false) == code(ui::Key::minus));     // a German one
    CHECK(key_of("=", "Digit0", true) == code(ui::Key::digit_0));
    CHECK(key_of("+", "NumpadAdd", false) == code(ui::Key::keypad_add));
    CHECK(key_of("5", "Numpad5", false) == -1);
    CHECK(key_of(" ", "Space", false) == code(ui::Key::space));
    CHECK(key_of("ArrowLeft", "ArrowLeft", false) == code(ui::Key::left));
    CHECK(key_of("F1", "F1", false) == code(ui::Key::f1));
    CHECK(key_of("F12", "F12", false) == code(ui::Key::f12));
    CHECK(key_of("F13", "F13", false) == -1);
    CHECK(key_of("Control", "ControlRight", false) == 345);
    CHECK(key_of("Dead", "BracketLeft", false) == -1);
    CHECK(key_of("", "", false) == -1);
    for (const ui::Key key : ui::all_keys()) {  // each can be typed on a US keyboard
        bool found = false;
        for (const char* name :
             {"Space",     "Comma",      "Minus",     "Period",   "Slash",  "Equal",      "Escape",
              "Enter",     "Tab",        "Backspace", "Insert",   "Delete", "ArrowRight", "ArrowLeft",
              "ArrowDown", "ArrowUp",    "PageUp",    "PageDown", "Home",   "End",        "NumpadSubtract",
              "NumpadAdd", "NumpadEnter"})
            found |= key_of("", name, false) == code(key);
        for (char c = 'A'; c <= 'Z'; ++c) found |= key_of("", std::string("Key") + c, false) == code(key);
        for (char c = '0'; c <= '9'; ++c) found |= key_of("", std::string("Digit") + c, false) == code(key);
        for (int f = 1; f <= 12; ++f) found |= key_of("", "F" + std::to_string(f), false) == code(key);
        CHECK_MESSAGE(found, code(key));
    }
}

TEST_CASE("a key types one character or none") {
    CHECK(character_of("a") == 'a');
    CHECK(character_of("é") == 0xE9);
    CHECK(character_of("я") == 0x44F);
    CHECK(character_of("€") == 0x20AC);
    CHECK(character_of("😀") == 0x1F600);
    for (const char* name : {"", "Enter", "F1", "Dead", "Shift", "ArrowLeft"}) CHECK(character_of(name) == 0);
}

TEST_CASE("a tap is a click where it was") {
    Screen screen;
    screen.frames(2);
    screen.put({{300, 100}});
    screen.move({{303, 102}});
    screen.move({});
    screen.frames(6);
    CHECK(screen.seen == std::vector<std::string>{"press 300,100", "release 300,100"});
    CHECK(screen.wheel == 0);
}

TEST_CASE("a finger drags what holds the mouse, and scrolls elsewhere") {
    Screen screen;
    screen.frames(2);
    screen.put({{100, 100}});
    screen.frames(4);
    screen.move({{100, 150}});
    screen.frames(3);
    screen.move({{100, 200}});
    screen.frames(3);
    screen.move({});
    screen.frames(4);
    CHECK(screen.seen == std::vector<std::string>{"press 100,100", "release 100,200"});
    CHECK(screen.wheel == 0);

    screen.seen.clear();
    screen.put({{300, 300}});
    screen.frames(4);
    screen.move({{300, 200}});
    screen.frames(4);
    screen.move({{300, 100}});
    screen.frames(4);
    screen.move({});
    screen.frames(4);
    CHECK(screen.wheel == doctest::Approx(-2));  // 200 px of 100 a notch: the page follows the finger
    CHECK(screen.seen.size() == 2);
}

TEST_CASE("two fingers scroll together and zoom apart") {
    Screen screen;
    screen.frames(2);
    screen.put({{250, 200}});
    screen.put({{250, 200}, {350, 200}});
    screen.frames(3);
    screen.move({{250, 260}, {350, 260}});
    screen.frames(3);
    CHECK(screen.wheel == doctest::Approx(0.6));
    screen.wheel = 0;
    screen.move({{200, 260}, {400, 260}});  // twice as far apart
    screen.frames(3);
    CHECK(screen.wheel == doctest::Approx(7.27).epsilon(0.01));
    screen.wheel = 0;
    screen.move({{200, 260}});  // one finger is lifted: the other does nothing any more
    screen.move({{200, 100}});
    screen.move({});
    screen.frames(4);
    CHECK(screen.wheel == 0);
    CHECK_FALSE(ImGui::GetIO().MouseDown[0]);
}
