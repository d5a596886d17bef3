// Work that is ended in its midst, by whoever asks between its parts.
#include "core/threads/ask.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "core/threads/job.h"
#include "core/threads/parallel.h"

using namespace fp8lab;

namespace {

struct Stop {};

void rest() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

}  // namespace

TEST_CASE("a loop asks before each part, and visits every index once in parts of its grain") {
    for (const int count : {1, 2, 3}) {
        set_threads(count);
        for (const std::size_t n : {1u, 63u, 64u, 1000u, 65537u}) {
            std::atomic<std::size_t> asked = 0, parts = 0;
            std::vector<std::atomic<int>> visits(n);
            std::atomic<bool> cut_elsewhere = false;
            const AskBetween ask([&] { ++asked; });
            parallel_for(n, 10, [&](std::size_t begin, std::size_t end) {
                ++parts;
                if (begin % 10 != 0 || (end % 10 != 0 && end != n)) cut_elsewhere = true;
                for (std::size_t i = begin; i < end; ++i) ++visits[i];
            });
            for (const auto& v : visits) REQUIRE(v == 1);
            CHECK_FALSE(cut_elsewhere);
            CHECK(asked == parts);
            CHECK(parts >= std::min<std::size_t>(64, std::max<std::size_t>(n / 10, 1)));
        }
    }
}

TEST_CASE("what is asked for is thrown by the loop, from whichever thread, and the threads live on") {
    for (const int count : {1, 2, 3}) {
        set_threads(count);
        std::atomic<int> done = 0;
        {
            const AskBetween ask([&] {
                if (done > 10) throw Stop();
            });
            CHECK_THROWS_AS(parallel_for(100'000, 1, [&](std::size_t, std::size_t) { ++done; }), Stop);
        }
        CHECK(done < 1000);
        std::atomic<std::size_t> sum = 0;
        parallel_for(1000, 1, [&](std::size_t begin, std::size_t end) { sum += end - begin; });
        CHECK(sum == 1000);
    }
}

TEST_CASE("loops inside a loop ask too, on every thread, and other threads' loops do not") {
    set_threads(3);
    std::atomic<int> asked = 0;
    const AskBetween ask([&] { ++asked; });
    parallel_for(12, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) parallel_for(1000, 1, [](std::size_t, std::size_t) {});
    });
    CHECK(asked >= 12 * 64);
    asked = 0;
    std::jthread([] { parallel_for(1000, 1, [](std::size_t, std::size_t) {}); }).join();
    CHECK(asked == 0);
    // The workers have forgotten who asked.
    const AskBetween nobody;
    parallel_for(1000, 1, [](std::size_t, std::size_t) {});
    CHECK(asked == 0);
}

TEST_CASE("the newest object of a thread is asked, and one without a function lets loops run to their ends") {
    set_threads(2);
    const AskBetween outer([] { throw Stop(); });
    CHECK_THROWS_AS(ask_between(), Stop);
    {
        const AskBetween to_the_end;
        CHECK_NOTHROW(ask_between());
        CHECK_NOTHROW(parallel_for(100, 1, [](std::size_t, std::size_t) {}));
        int asked = 0;
        const AskBetween inner([&] { ++asked; });
        ask_between();
        CHECK(asked == 1);
    }
    CHECK_THROWS_AS(parallel_for(1, 1, [](std::size_t, std::size_t) {}), Stop);
}

TEST_CASE("a job whose result nobody waits for any more ends in its loop") {
    set_threads(2);
    std::atomic<int> parts = 0;
    constexpr int kParts = 60'000;  // half a minute of two threads
    {
        Job<int, int> job([&](const int&) {
            parallel_for(kParts, 1, [&](std::size_t begin, std::size_t end) {
                for (std::size_t i = begin; i < end; ++i, ++parts) rest();
            });
            return 1;
        });
        job.start_worker({});
        job.request(1);
        while (parts == 0) rest();
    }
    CHECK(parts < kParts / 2);
}

TEST_CASE("the number of threads may change while another thread's loops run") {
    std::atomic<bool> ended = false;
    std::atomic<int> wrong = 0;
    std::jthread loops([&] {
        while (!ended) {
            std::atomic<std::size_t> sum = 0;
            parallel_for(1000, 1, [&](std::size_t begin, std::size_t end) { sum += end - begin; });
            if (sum != 1000) ++wrong;
        }
    });
    for (int round = 0; round < 200; ++round) {
        set_threads(1 + round % 4);
        CHECK(threads() == 1 + round % 4);
        if (round % 10 == 0) lower_priority_of_workers();
    }
    ended = true;
    loops.join();
    CHECK(wrong == 0);
}
