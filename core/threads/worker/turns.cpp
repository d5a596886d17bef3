#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "core/threads/worker.h"

namespace fp8lab {

struct Worker::Body {
    Turn turn;
    Clock::time_point next = kAtOnce;
    std::stop_source source = {};
    bool began = false;

    bool is_over() const { return began && source.stop_requested(); }

    // Those that exist, in the order in which their turns come. There is only one thread.
    static std::vector<Body*>& all() {
        static std::vector<Body*> bodies;
        return bodies;
    }
};

Worker::Worker(Turn turn, Priority) : body_(std::make_unique<Body>(Body{.turn = std::move(turn)})) {
    Body::all().push_back(body_.get());
}

Worker::~Worker() {
    stop();
    std::erase(Body::all(), body_.get());
}

void Worker::notify() { body_->next = kAtOnce; }
void Worker::stop() { body_->source.request_stop(); }

Worker::Clock::time_point do_turns(std::chrono::milliseconds budget) {
    static bool inside = false;  // a turn that waits for other turns has none of its own
    const auto end = Worker::Clock::now() + budget;
    for (;;) {
        std::vector<Worker::Body*>& all = Worker::Body::all();
        const auto soonest = std::ranges::min_element(
            all, {}, [](const Worker::Body* body) { return body->is_over() ? Worker::kAsleep : body->next; });
        if (inside || soonest == all.end() || (*soonest)->is_over()) return Worker::kAsleep;
        Worker::Body* const body = *soonest;
        if (body->next > Worker::Clock::now()) return body->next;
        std::rotate(soonest, soonest + 1, all.end());  // the others first
        inside = body->began = true;
        body->next = Worker::kAsleep;  // notify() within the turn brings it forward
        const Worker::Clock::time_point next = body->turn(body->source.get_token());
        body->next = std::min(body->next, next);
        inside = false;
        if (Worker::Clock::now() >= end) return Worker::kAtOnce;
    }
}

void wait_for_workers() {
    if (do_turns(std::chrono::milliseconds(0)) != Worker::kAtOnce)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace fp8lab
