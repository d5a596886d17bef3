// Fingers as the mouse that the labs know: a tap is a click, a drag on a control drags it, elsewhere it scrolls; two fingers
// scroll, and zoom where they come together or go apart.
#pragma once

#include <span>

#include "app/desk/input_feed.h"

namespace fp8lab {

class Touch {
  public:
    struct Finger {
        float x = 0, y = 0;  // physical px
    };
    // `began`: this change put a finger down. `fingers`: those that are down now.
    void changed(std::span<const Finger> fingers, bool began, InputFeed& feed);

    // Before each frame, once ImGui knows what the last one pressed: `takes`: a control holds the mouse. Returns the notches
    // of the wheel that this frame gets; `pixels_per_notch`: how far the window scrolls for one.
    float wheel(bool takes, float pixels_per_notch, InputFeed& feed);

  private:
    enum class Doing { nothing, pressed, dragging, scrolling, pinching } doing_ = Doing::nothing;
    Finger at_, start_;
    float apart_ = 0;    // of two fingers
    float travel_ = 0;   // px that are to be scrolled
    float notches_ = 0;  // of a pinch
    int frames_ = 0;     // since the finger came down
};

}  // namespace fp8lab
