#include "app/window/key_queue.h"

#include <GLFW/glfw3.h>

#include <set>

namespace fp8lab {

std::vector<KeyEvent> KeyQueue::take_frame() {
    std::vector<KeyEvent> frame;
    std::set<int> changed;
    bool typed = false, went_down = false;
    while (!events_.empty()) {
        const KeyEvent& next = events_.front();
        if (next.button) {
            if (frame.empty()) events_.pop_front();
            break;
        }
        const bool is_key = next.character == 0;
        const bool release = is_key && next.action == GLFW_RELEASE;
        if (is_key && (typed || (release && went_down) || !changed.insert(next.key).second)) break;
        went_down |= is_key && !release;
        typed |= !is_key;
        frame.push_back(next);
        events_.pop_front();
    }
    return frame;
}

}  // namespace fp8lab
