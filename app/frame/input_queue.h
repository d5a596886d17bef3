// The keys and buttons that the system reported. A frame sees once which are down and where the pointer is: a press
// and a release within one frame would be no press at all, Ctrl K no chord if Ctrl is up again when K is seen, and a
// press, a drag and a release no drag but a click where it ended. Here they go to frames of their own, and what comes
// after them later. (Dear ImGui 1.86 has no queue; that of later versions does not keep chords together, and gives
// the last motion of a drag to the frame of the release.)
#pragma once

#include <array>
#include <deque>
#include <vector>

namespace fp8lab {

struct InputEvent {
    enum class Kind { key, character, button, motion };
    Kind kind = Kind::key;
    bool down = false;                    // a key or a button: it went down, else up
    int key = 0, scancode = 0, mods = 0;  // of a key: as labs/ui/input.h counts
    unsigned character = 0;
    int button = 0;      // of the mouse
    float x = 0, y = 0;  // button and motion: where the pointer was
};

class InputQueue {
  public:
    void add(const InputEvent& event);
    bool empty() const { return events_.empty(); }
    // The events of the next frame, oldest first. A frame takes events until a key changes a second time,
    // until a key is released after another was pressed (so that Ctrl is still down when K arrives), or until
    // a key changes after a character. A button's change takes a frame for itself: keys that come after a click do
    // not overtake it. So does the motion before a release. `keys_wait`: keys and characters are for a later frame.
    std::vector<InputEvent> take_frame(bool keys_wait = false);

  private:
    std::deque<InputEvent> events_;
    std::array<float, 2> pressed_{};  // where a button last changed
};

}  // namespace fp8lab
