// Which of the keys that the system reported each frame is told of.
#include "app/frame/input_queue.h"

#include <doctest/doctest.h>

#include <string>

using fp8lab::InputEvent, fp8lab::InputQueue;

namespace {

// "+a" a goes down, "-a" a goes up, "'a" the character a, "(1" a button of the mouse goes down where the pointer is at
// 1, ")2" up at 2: the events of each frame, frames separated by "|"; "~2" is a motion to 2.
std::string frames_of(const std::string& events, bool keys_wait = false) {
    using Kind = InputEvent::Kind;
    InputQueue queue;
    for (std::size_t i = 0; i + 1 < events.size(); i += 2) {
        const char what = events[i], which = events[i + 1];
        const Kind kind = what == '\''                 ? Kind::character
                          : what == '(' || what == ')' ? Kind::button
                                                       : Kind::key;
        queue.add({.kind = kind,
                   .down = what == '+' || what == '(',
                   .key = kind == Kind::key ? which : 0,
                   .character = kind == Kind::character ? static_cast<unsigned>(which) : 0,
                   .x = kind == Kind::button ? static_cast<float>(which) : 0});
    }
    std::string out;
    for (int frame = 0; frame < 20 && !queue.empty(); ++frame) {
        for (const InputEvent& event : queue.take_frame(keys_wait && frame < 3)) {
            switch (event.kind) {
                case Kind::key:
                    out += {event.down ? '+' : '-', static_cast<char>(event.key)};
                    break;
                case Kind::character:
                    out += {'\'', static_cast<char>(event.character)};
                    break;
                case Kind::button:
                    out += {event.down ? '(' : ')', static_cast<char>(event.x)};
                    break;
                case Kind::motion:
                    out += {'~', static_cast<char>(event.x)};
            }
        }
        out += '|';
    }
    return out;
}

}  // namespace

TEST_CASE("a tap within one frame is a press in one frame and a release in the next") {
    CHECK(frames_of("+a-a") == "+a|-a|");
    CHECK(frames_of("+a-a+a-a") == "+a|-a|+a|-a|");
}

TEST_CASE("different keys share a frame, and a chord is let go of after the frame that sees it") {
    CHECK(frames_of("+a+b") == "+a+b|");
    CHECK(frames_of("+c+k-k-c") == "+c+k|-k-c|");  // c stands for Ctrl
    CHECK(frames_of("+c+k-c-k") == "+c+k|-c-k|");
    CHECK(frames_of("+k-c-k") == "+k|-c-k|");  // Ctrl went down a frame before
}

TEST_CASE("characters keep their place among the keys: Enter right after a word comes a frame later") {
    CHECK(frames_of("+a'a-a+b'b-b") == "+a'a|-a+b'b|-b|");
    CHECK(frames_of("'a'b'c") == "'a'b'c|");
    CHECK(frames_of("+a'a+E-a-E") == "+a'a|+E|-a-E|");
}

TEST_CASE("keys after a click come after the two frames that see it, keys before it do not wait") {
    CHECK(frames_of("(1)1+a'a-a") == "(1|)1|+a'a|-a|");
    CHECK(frames_of("+a'a(1-a)1") == "+a'a|(1|-a|)1|");
    CHECK(frames_of("(1") == "(1|");
}

TEST_CASE("a press, a drag and a release within one frame are three frames, each with its place") {
    CHECK(frames_of("(1)5") == "(1|~5|)5|");
    CHECK(frames_of("(1)5(5)5") == "(1|~5|)5|(5|)5|");
    CHECK(frames_of("(1)5(2)7") == "(1|~5|)5|(2|~7|)7|");
}

TEST_CASE("while a field opens keys wait, and the mouse does not") {
    CHECK(frames_of("+a'a", true) == "|||+a'a|");
    CHECK(frames_of("(1)1+a'a", true) == "(1|)1||+a'a|");
}
