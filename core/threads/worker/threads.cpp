#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "core/threads/parallel.h"
#include "core/threads/worker.h"

namespace fp8lab {

struct Worker::Body {
    std::mutex mutex;  // of `due`
    std::condition_variable_any changed;
    bool due = false;
    std::jthread thread;

    void serve(const std::stop_token& stop, const Turn& turn) {
        do {
            const Clock::time_point next = turn(stop);
            std::unique_lock lock{mutex};
            const auto is_due = [this] { return due; };
            if (next == kAsleep)
                changed.wait(lock, stop, is_due);
            else if (next > Clock::now())
                changed.wait_until(lock, stop, next, is_due);
            due = false;
        } while (!stop.stop_requested());
    }
};

Worker::Worker(Turn turn, Priority priority) : body_(std::make_unique<Body>()) {
    body_->thread =
        std::jthread([body = body_.get(), turn = std::move(turn), priority](const std::stop_token& stop) {
            if (priority == Priority::below_frames) lower_priority();
            body->serve(stop, turn);
        });
}

Worker::~Worker() = default;

void Worker::notify() {
    {
        const std::lock_guard lock{body_->mutex};
        body_->due = true;
    }
    body_->changed.notify_one();
}

void Worker::stop() { body_->thread.request_stop(); }

void wait_for_workers() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

Worker::Clock::time_point do_turns(std::chrono::milliseconds) { return Worker::kAsleep; }

}  // namespace fp8lab
