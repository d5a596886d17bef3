#include "app/shell/key_queue.h"

#include <set>

namespace fp8lab {

std::vector<KeyEvent> KeyQueue::take_frame() {
    std::vector<KeyEvent> frame;
    std::set<int> changed;
    bool typed = false;
    while (!events_.empty()) {
        const KeyEvent& next = events_.front();
        const bool is_key = next.character == 0;
        if (is_key && (typed || !changed.insert(next.key).second)) break;
        typed |= !is_key;
        frame.push_back(next);
        events_.pop_front();
    }
    return frame;
}

}  // namespace fp8lab
