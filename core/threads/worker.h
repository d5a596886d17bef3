// Work beside the thread that asks for it, in turns: the one mechanism of requests (job.h), trainings, scans and logs.
//
//   Worker worker_{[this](const std::stop_token& stop) {
//       if (!take_work()) return Worker::kAsleep;
//       do_a_part(stop);
//       return Worker::kAtOnce;
//   }};
//   worker_.notify();  // there is work
//
// Each worker has a thread of its own. A build without threads (FP8LAB_THREADS=OFF), for a machine that may not have any,
// does the turns inside wait_for_workers() and do_turns(); a turn there should be short.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>

namespace fp8lab {

class Worker {
  public:
    using Clock = std::chrono::steady_clock;
    static constexpr Clock::time_point kAtOnce = Clock::time_point::min(), kAsleep = Clock::time_point::max();

    // Does a part of the work and returns when the next turn is due; after kAsleep only notify() brings one. It may not
    // throw. The first turn is due at once. It is destroyed where it runs.
    using Turn = std::function<Clock::time_point(const std::stop_token&)>;

    enum class Priority { normal, below_frames };  // below_frames: lower_priority() of parallel.h
    // Throws std::system_error where there is no other thread to be had.
    explicit Worker(Turn turn, Priority priority = Priority::below_frames);
    ~Worker();  // stop(), and waits for the turn under way
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    void notify();  // a turn is due; one under way is followed by another
    void stop();    // the turn under way, or the first, is the last; its token says so

  private:
    friend Clock::time_point do_turns(std::chrono::milliseconds budget);
    struct Body;
    std::unique_ptr<Body> body_;
};

// For a loop that waits for what a worker does: leaves the processor to it for a millisecond.
void wait_for_workers();

// Without threads: does the turns that are due, for about so long. Returns when the next is due. With threads: kAsleep.
Worker::Clock::time_point do_turns(std::chrono::milliseconds budget);

}  // namespace fp8lab
