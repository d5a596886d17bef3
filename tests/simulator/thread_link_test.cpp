// Ranks that are threads of one process: their link, and the threads themselves.
#include "kernels/ranks/thread_link.h"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "core/base/error.h"
#include "kernels/ranks/workers.h"

using namespace fp8lab;
using namespace std::chrono_literals;

namespace {

// What each rank's link threw; empty: nothing.
template <class Work>
std::vector<std::string> on_links(int ranks, std::chrono::milliseconds timeout, const Work& work) {
    const auto links = cuda::make_thread_links(ranks, timeout);
    std::vector<std::string> thrown(links.size());
    cuda::Workers(ranks).run(
        [&](int rank) {
            const auto at = static_cast<std::size_t>(rank);
            try {
                work(*links[at], rank);
            } catch (const Error& error) {
                thrown[at] = error.what();
            }
        },
        [](int, const std::exception&) {});
    return thrown;
}

}  // namespace

TEST_CASE("ranks that are threads hear all bytes of all, call after call") {
    const auto thrown = on_links(4, 10s, [](cuda::HostLink& link, int rank) {
        for (int call = 0; call < 200; ++call) {
            const auto all = link.all_gather(std::to_string(10 * call + rank), "a test");
            for (int r = 0; r < 4; ++r)
                CHECK(all[static_cast<std::size_t>(r)] == std::to_string(10 * call + r));
            link.check();
        }
    });
    for (const std::string& text : thrown) CHECK(text == "");
}

TEST_CASE("a thread that fails, or does not come, ends the calls of the others") {
    const auto failed = on_links(3, 10s, [](cuda::HostLink& link, int rank) {
        if (rank == 1) return link.fail("rank 1 (GPU 1): out of memory");
        link.all_gather({}, "step 7");
    });
    CHECK(failed[0] == "ranks: rank 1 (GPU 1): out of memory");
    CHECK(failed[2] == failed[0]);
    const auto missing = on_links(3, 200ms, [](cuda::HostLink& link, int rank) {
        if (rank != 1) link.all_gather({}, "step 7");
    });
    CHECK(missing[0] == "ranks: rank 1 did not reach step 7 within 0.2 s");
    CHECK(missing[2] == missing[0]);
}

TEST_CASE("workers do each call once in every thread, and the first that throws ends it") {
    cuda::Workers workers(3);
    std::atomic<int> calls = 0, told = 0, failed = -1;
    const auto nothing = [](int, const std::exception&) {};
    for (int i = 0; i < 100; ++i) workers.run([&](int index) { calls += index + 1; }, nothing);
    CHECK(calls == 600);
    const auto throws = [&](int index) {
        if (index > 0) throw std::runtime_error("rank " + std::to_string(index) + " has failed");
    };
    const auto note = [&](int index, const std::exception& error) {
        ++told;
        failed = index;
        CHECK(error.what() == "rank " + std::to_string(index) + " has failed");
    };
    std::string thrown;
    try {
        workers.run(throws, note);
    } catch (const std::exception& error) {
        thrown = error.what();
    }
    CHECK(told == 1);
    CHECK(failed > 0);
    CHECK(thrown == "rank " + std::to_string(failed) + " has failed");
    workers.run([&](int) { ++calls; }, nothing);  // they still serve
    CHECK(calls == 603);
}
