#include "core/threads/parallel.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace fp8lab;

TEST_CASE("every index is visited exactly once, whatever the number of threads") {
    for (const int count : {1, 2, 3, 8}) {
        set_threads(count);
        CHECK(threads() == count);
        for (const std::size_t n : {0u, 1u, 7u, 1000u, 65537u}) {
            std::vector<std::atomic<int>> visits(n);
            parallel_for(n, 10, [&](std::size_t begin, std::size_t end) {
                for (std::size_t i = begin; i < end; ++i) ++visits[i];
            });
            for (const auto& v : visits) REQUIRE(v == 1);
        }
    }
}

TEST_CASE("a loop is cut only at multiples of its grain") {
    for (const int count : {1, 2, 3, 8}) {
        set_threads(count);
        for (const std::size_t n : {63u, 64u, 127u, 1000u, 65537u}) {
            std::mutex mutex;
            std::set<std::size_t> begins, ends;
            parallel_for(n, 64, [&](std::size_t begin, std::size_t end) {
                const std::lock_guard lock{mutex};
                begins.insert(begin);
                ends.insert(end);
            });
            for (const std::size_t begin : begins) CHECK(begin % 64 == 0);
            ends.erase(n);
            for (const std::size_t end : ends) CHECK(begins.contains(end));
        }
    }
}

TEST_CASE("a loop of one range leaves the threads to the loop inside it, a split loop does not") {
    set_threads(2);
    const auto ranges_inside = [](std::size_t outer) {
        std::atomic<int> ranges = 0;
        parallel_for(outer, 1, [&](std::size_t, std::size_t) {
            parallel_for(64, 1, [&](std::size_t, std::size_t) { ++ranges; });
        });
        return ranges.load();
    };
    CHECK(ranges_inside(1) == 8);  // 4 a thread
    CHECK(ranges_inside(8) == 8);  // one in each of the 8 outer ranges
}

TEST_CASE("an exception of a body reaches the caller and the pool lives on") {
    set_threads(4);
    const auto fails = [](std::size_t begin, std::size_t) {
        if (begin > 0) throw std::runtime_error("x");
    };
    CHECK_THROWS_AS(parallel_for(1000, 1, fails), std::runtime_error);
    std::atomic<std::size_t> sum = 0;
    parallel_for(1000, 1, [&](std::size_t begin, std::size_t end) { sum += end - begin; });
    CHECK(sum == 1000);
}

TEST_CASE("loops from two threads at once, and a loop inside a loop, both finish") {
    set_threads(2);
    std::atomic<int> total = 0;
    const auto add = [&](std::size_t begin, std::size_t end) { total += static_cast<int>(end - begin); };
    const auto work = [&] {
        for (int i = 0; i < 100; ++i)
            parallel_for(64, 1,
                         [&](std::size_t begin, std::size_t end) { parallel_for(end - begin, 1, add); });
    };
    std::jthread other(work);
    work();
    other.join();
    CHECK(total == 2 * 100 * 64);
}

TEST_CASE("the workers give way to a window's frames, the calling thread does not, whatever their number") {
    set_threads(1);
    lower_priority_of_workers();
    const int caller = getpriority(PRIO_PROCESS, 0);
    for (const int count : {2, 3}) {
        set_threads(count);
        std::mutex mutex;
        std::map<std::thread::id, int> priorities;
        while (priorities.size() < static_cast<std::size_t>(count))  // until every worker got a range
            parallel_for(64, 1, [&](std::size_t, std::size_t) {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
                const std::lock_guard lock{mutex};
                priorities[std::this_thread::get_id()] =
                    getpriority(PRIO_PROCESS, 0);  // of this thread, on Linux
            });
        for (const auto& [id, priority] : priorities)
            CHECK(priority == (id == std::this_thread::get_id() ? caller : std::min(caller + 10, 19)));
    }
}
