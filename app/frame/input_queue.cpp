#include "app/frame/input_queue.h"

#include <set>

namespace fp8lab {

void InputQueue::add(const InputEvent& event) {
    using enum InputEvent::Kind;
    if (event.kind == button) {
        const std::array place{event.x, event.y};
        if (!event.down && place != pressed_) events_.push_back({.kind = motion, .x = event.x, .y = event.y});
        pressed_ = place;
    }
    events_.push_back(event);
}

std::vector<InputEvent> InputQueue::take_frame(bool keys_wait) {
    using enum InputEvent::Kind;
    std::vector<InputEvent> frame;
    std::set<int> changed;
    bool typed = false, went_down = false;
    while (!events_.empty()) {
        const InputEvent& next = events_.front();
        const bool of_mouse = next.kind == button || next.kind == motion;
        if (of_mouse ? !frame.empty() : keys_wait) break;
        const bool is_key = next.kind == key;
        const bool release = is_key && !next.down;
        if (is_key && (typed || (release && went_down) || !changed.insert(next.key).second)) break;
        went_down |= is_key && !release;
        typed |= next.kind == character;
        frame.push_back(next);
        events_.pop_front();
        if (of_mouse) break;
    }
    return frame;
}

}  // namespace fp8lab
