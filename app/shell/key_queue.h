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
    // The events of the next frame, oldest first: until a key changes for the second time, a key is released
    // after another was pressed (Ctrl, of which the frame would know nothing at the key that it belongs to),
    // or a key changes after a character.
    std::vector<KeyEvent> take_frame();

  private:
    std::deque<KeyEvent> events_;
};

}  // namespace fp8lab
