// The keys that the system reported. A frame sees once which keys and modifiers are down: a press and a release
// within one frame would be no press at all, and Ctrl K no chord if Ctrl is up again when K is seen. (Dear ImGui
// 1.86 has no queue of its own; that of later versions does not keep chords together.) Here they go to two frames,
// and what comes after them later.
#pragma once

#include <deque>
#include <vector>

namespace fp8lab {

struct KeyEvent {  // GLFW's numbers
    int key = 0, scancode = 0, action = 0, mods = 0;
    unsigned character = 0;  // 0: a key; otherwise this character was typed
    bool button = false;     // neither: a button of the mouse went down or up, which ImGui's backend knows of
};

class KeyQueue {
  public:
    void add(const KeyEvent& event) { events_.push_back(event); }
    bool empty() const { return events_.empty(); }
    // The events of the next frame, oldest first. A frame takes events until a key changes a second time,
    // until a key is released after another was pressed (so that Ctrl is still down when K arrives), or until
    // a key changes after a character. A button's change takes a frame for itself, and is not among the events:
    // keys that come after a click do not overtake it.
    std::vector<KeyEvent> take_frame();

  private:
    std::deque<KeyEvent> events_;
};

}  // namespace fp8lab
