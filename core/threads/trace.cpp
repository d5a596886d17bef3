#include "core/threads/trace.h"

#include <utility>

namespace fp8lab {

void TraceTrack::begin_step(int step) {
    open_.clear();
    open("step", "step " + std::to_string(step), {});
}

void TraceTrack::end_step() {
    if (open_.empty()) return;
    close(0);
    done_.push_back(std::exchange(open_, {}));
    if (done_.size() > steps_) done_.pop_front();
}

std::size_t TraceTrack::open(const char* category, std::string name, std::string detail) {
    open_.push_back({category, std::move(name), std::move(detail), Clock::now(), {}});
    return open_.size() - 1;
}

}  // namespace fp8lab
