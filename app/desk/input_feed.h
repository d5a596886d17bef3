// Keys and mouse of a window, from the system's events to Dear ImGui: each frame gets its own (input_queue.h). Knows neither
// GLFW nor a browser.
#pragma once

#include <array>
#include <optional>

#include "app/frame/input_queue.h"

namespace fp8lab {

class InputFeed {
  public:
    // What the system reports, at any time. `note` is for what needs no more than another frame: wheel, focus, resize.
    void note() { heard_ = true; }
    void key(const InputEvent& event);  // or a character
    void pointer(float x, float y);     // physical px
    void button(int button,
                bool down);  // of the mouse: 0 left, 1 right, 2 middle; where the pointer was last
    // Something came since the last call, or the last frame left something for the next.
    bool take();

    // Before ImGui::NewFrame(): the keys and characters of this frame. `keys_wait`: they are for a later one.
    void feed_keys(bool keys_wait);
    // After feed_keys() and the backend. `backend_tells`: it tells where the mouse is by now, as GLFW's does; what an event
    // says comes before that.
    void feed_mouse(bool backend_tells);

  private:
    bool heard_ = true, moved_ = false;
    InputQueue queue_;
    std::array<float, 2> pointer_{};
    std::array<bool, 3> held_{};  // buttons, as the frames were told
    // The place of the mouse at the event that this frame gets, and whether the last frame got one.
    std::optional<std::array<float, 2>> pointer_then_;
    bool pointer_was_then_ = false;
};

}  // namespace fp8lab
