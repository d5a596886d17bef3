// table::Long: work of seconds that tells how far it is, ends for newer parameters, and can be stopped.
#include "labs/table/long.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

using namespace fp8lab;
using namespace fp8lab::table;

namespace {

// Counts to `steps` in its own time: each step waits until `allowed` is above it.
struct Counting {
    int wanted = 1000;
    std::atomic<int> allowed{0}, ended{0};
    Long<int, int> part{"", [this] { return wanted == 0 ? std::nullopt : std::optional(wanted); },
                        [this](const int& steps, const Told<int>& told) {
                            struct AtEnd {
                                std::atomic<int>& count;
                                ~AtEnd() { ++count; }
                            } const at_end{ended};
                            for (int i = 1; i <= steps; ++i) {
                                while (allowed < i) {
                                    ask_between();
                                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                }
                                told.so_far(i);
                                told.share(static_cast<std::size_t>(i), static_cast<std::size_t>(steps));
                            }
                            return -steps;
                        }};
    template <class Condition>
    bool waited(Condition condition) {
        for (int i = 0; i < 20'000; ++i) {
            part.refresh(true, true);
            if (condition()) return true;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return false;
    }
};

}  // namespace

TEST_CASE("work of seconds shows what it has so far, and then its result") {
    Counting counting;
    std::atomic<int> woken{0};
    counting.wanted = 4;
    counting.part.start_worker([&] { ++woken; });
    counting.part.refresh(true, true);
    CHECK(counting.part.is_old());
    counting.allowed = 2;
    CHECK(counting.waited([&] { return *counting.part == 2; }));
    CHECK(counting.waited([&] { return counting.part.share() == 0.5; }));
    CHECK((counting.part.busy() && !counting.part.is_old()));
    counting.allowed = 4;
    CHECK(counting.waited([&] { return *counting.part == -4; }));
    CHECK(counting.waited([&] { return !counting.part.busy(); }));
    CHECK(woken > 0);
}

TEST_CASE("work under way survives that its worker is started again, and wakes who started it last") {
    Counting counting;
    std::atomic<int> first{0}, second{0};
    counting.wanted = 300, counting.allowed = 200;
    counting.part.start_worker([&] { ++first; });
    counting.part.refresh(true, true);
    for (int i = 0; i < 50; ++i) {
        counting.part.start_worker([&] { ++first; });
        std::this_thread::yield();
    }
    counting.part.start_worker([&] { ++second; });
    const int before = first;
    counting.allowed = 300;
    CHECK(counting.waited([&] { return *counting.part == -300; }));
    CHECK(counting.waited([&] { return !counting.part.busy() && second > 0; }));
    CHECK(first == before);
    CHECK(counting.ended == 1);
}

TEST_CASE("newer parameters end the work for older ones, whose result is never shown") {
    Counting counting;
    counting.part.start_worker({});
    counting.part.refresh(true, true);
    counting.allowed = 3;
    CHECK(counting.waited([&] { return *counting.part == 3; }));
    counting.wanted = 2;
    counting.part.refresh(true, true);
    CHECK(counting.part.is_old());
    CHECK(counting.waited([&] { return *counting.part == -2; }));
    CHECK(counting.ended == 2);
}

TEST_CASE("stopped work keeps what it has, and goes on from the start when it is resumed") {
    Counting counting;
    counting.wanted = 5;
    counting.part.start_worker({});
    counting.part.refresh(true, true);
    counting.allowed = 2;
    CHECK(counting.waited([&] { return *counting.part == 2; }));
    counting.part.stop();
    CHECK(counting.part.stopped());
    CHECK(counting.waited([&] { return !counting.part.busy(); }));
    CHECK(*counting.part == 2);
    counting.allowed = 5;
    counting.part.resume();
    CHECK(counting.waited([&] { return *counting.part == -5; }));
    CHECK_FALSE(counting.part.stopped());
    counting.part.stop();  // nothing runs
    CHECK_FALSE(counting.part.stopped());
}

TEST_CASE("without a worker the result is there after refresh(), without wanted parameters there is none") {
    Counting counting;
    counting.wanted = 3, counting.allowed = 3;
    counting.part.refresh(true, false);
    CHECK(*counting.part == -3);
    counting.wanted = 0;
    counting.part.refresh(true, false);
    CHECK(*counting.part == 0);
}

TEST_CASE("work under way ends with its part") {
    std::atomic<bool> ended{false};
    {
        Long<int, int> part{"", [] { return std::optional(1); },
                            [&](const int&, const Told<int>& told) -> int {
                                try {
                                    for (;;) told.share(1, 2);
                                } catch (const Cancelled&) {
                                    ended = true;
                                    throw;
                                }
                            }};
        part.start_worker({});
        part.refresh(true, true);
        while (part.share() == 0) std::this_thread::yield();
    }
    CHECK(ended);
}
