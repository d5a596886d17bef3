#include "core/threads/worker.h"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <thread>

namespace fp8lab {
namespace {

using namespace std::chrono_literals;

// Waits for what another thread does; fails where it never happens.
bool comes(const std::function<bool()>& done) {
    for (const auto end = Worker::Clock::now() + 20s; Worker::Clock::now() < end; wait_for_workers())
        if (done()) return true;
    return done();
}

}  // namespace

TEST_CASE("a worker has one turn at its start, and after kAsleep one for what it is told meanwhile") {
    std::atomic<int> turns = 0;
    std::promise<void> told;
    Worker worker([&, wait = told.get_future().share()](const std::stop_token&) {
        if (++turns == 1) wait.wait();  // so that notify() comes within the first turn
        return Worker::kAsleep;
    });
    REQUIRE(comes([&] { return turns == 1; }));
    worker.notify();
    worker.notify();
    told.set_value();
    CHECK(comes([&] { return turns == 2; }));
    std::this_thread::sleep_for(20ms);
    CHECK(turns == 2);
    worker.notify();
    CHECK(comes([&] { return turns == 3; }));
}

TEST_CASE("the next turn comes at the time that the last one named, and not before") {
    std::atomic<int> turns = 0;
    std::atomic<Worker::Clock::time_point> due = Worker::Clock::time_point{},
                                           came = Worker::Clock::time_point{};
    Worker worker([&](const std::stop_token&) {
        const auto now = Worker::Clock::now();
        if (turns == 1) came = now;
        if (turns++ > 0) return Worker::kAsleep;
        due = now + 50ms;
        return due.load();
    });
    REQUIRE(comes([&] { return turns == 2; }));
    CHECK(came.load() >= due.load());
}

TEST_CASE("a worker that is stopped ends its turn and has no other, and the first turn comes in any case") {
    std::atomic<int> turns = 0;
    std::atomic<bool> told = false;
    {
        Worker worker([&](const std::stop_token& stop) {
            ++turns;
            while (!stop.stop_requested()) std::this_thread::yield();
            told = true;
            return Worker::kAtOnce;
        });
        worker.stop();
        worker.notify();
    }
    CHECK(told);
    CHECK(turns == 1);
}

TEST_CASE("what a turn holds is destroyed where the turns were") {
    struct Held {
        std::thread::id& destroyed;
        ~Held() { destroyed = std::this_thread::get_id(); }
    };
    std::thread::id turn, destroyed;
    {
        const Worker worker([held = std::make_shared<Held>(destroyed), &turn](const std::stop_token&) {
            turn = std::this_thread::get_id();
            return Worker::kAsleep;
        });
    }
    CHECK(turn == destroyed);
    CHECK(turn != std::this_thread::get_id());
}

}  // namespace fp8lab
