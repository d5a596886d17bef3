// The keys that the system reported, for a Dear ImGui that sees once in each frame which keys are down
// (1.86): a press and a release within one frame would be no press at all. Here they go to two frames, and
// what comes after them later.
#pragma once

#include <deque>
#include <vector>

namespace fp8lab {

struct KeyEvent {  // GLFW's numbers
    int key = 0, scancode = 0, action = 0, mods = 0;
    unsigned character = 0;  // 0: a key; otherwise this character was typed
};

class KeyQueue {
  public:
    void add(const KeyEvent& event) { events_.push_back(event); }
    bool empty() const { return events_.empty(); }
    // The events of the next frame, oldest first. A frame takes events until a key changes a second time,
    // until a key is released after another was pressed (so that Ctrl is still down when K arrives), or until
    // a key changes after a character.
    //
    // Only ImGui 1.86 gets its keys from here. Later versions have a queue of their own, and a limit that is
    // left there: a chord whose Ctrl was pressed in an earlier frame and is released within K's frame is lost
    // under 1.90, which asks for the modifier when it delivers the key.
    std::vector<KeyEvent> take_frame();

  private:
    std::deque<KeyEvent> events_;
};

}  // namespace fp8lab
