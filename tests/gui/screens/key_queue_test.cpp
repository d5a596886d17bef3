// Which of the keys that the system reported each frame is told of.
#include "app/window/key_queue.h"

#include <doctest/doctest.h>

#include <string>

using fp8lab::KeyEvent, fp8lab::KeyQueue;

namespace {

// "+a" a goes down, "-a" a goes up, "'a" the character a, "*1" a button of the mouse: the events of each frame,
// frames separated by "|".
std::string frames_of(const std::string& events) {
    KeyQueue queue;
    for (std::size_t i = 0; i + 1 < events.size(); i += 2) {
        const bool typed = events[i] == '\'';
        queue.add({.key = typed ? 0 : events[i + 1],
                   .action = events[i] == '+' ? 1 : 0,
                   .character = typed ? static_cast<unsigned>(events[i + 1]) : 0,
                   .button = events[i] == '*'});
    }
    std::string out;
    while (!queue.empty()) {
        for (const KeyEvent& event : queue.take_frame()) {
            out += event.character != 0 ? '\'' : event.action == 1 ? '+' : '-';
            out += static_cast<char>(event.character != 0 ? static_cast<int>(event.character) : event.key);
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
    CHECK(frames_of("*1*1+a'a-a") == "||+a'a|-a|");
    CHECK(frames_of("+a'a*1-a*1") == "+a'a||-a||");
    CHECK(frames_of("*1") == "|");
}
