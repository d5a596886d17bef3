// The link between ranks that are processes; here each has a thread.
#include "kernels/ranks/tcp_link.h"

#include <doctest/doctest.h>

#include <functional>
#include <thread>
#include <vector>

#include "core/base/error.h"

using namespace fp8lab;
using namespace std::chrono_literals;

namespace {

// A port that nobody has: of this process and this call.
int free_port() {
    static int next =
        20000 + static_cast<int>(
                    std::hash<std::thread::id>()(std::this_thread::get_id()) +
                    static_cast<std::size_t>(std::chrono::steady_clock::now().time_since_epoch().count())) %
                    20000;
    return next < 0 ? next = 20000 : ++next;
}

using Work = std::function<void(cuda::HostLink&, int rank)>;
// What each rank's link threw; empty: nothing.
std::vector<std::string> on_ranks(int ranks, const Work& work, std::chrono::milliseconds timeout = 5s,
                                  const std::vector<std::string>& runs = {}) {
    const int port = free_port();
    std::vector<std::string> thrown(static_cast<std::size_t>(ranks));
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank)
        threads.emplace_back([&, rank] {
            const auto at = static_cast<std::size_t>(rank);
            try {
                const auto link = cuda::make_tcp_link({rank, 0, "127.0.0.1", port}, ranks,
                                                      runs.empty() ? "run" : runs[at], timeout);
                work(*link, rank);
            } catch (const Error& error) {
                thrown[at] = error.what();
            }
        });
    threads.clear();
    return thrown;
}

}  // namespace

TEST_CASE("ranks that are processes hear all bytes of all, in their order") {
    for (const int ranks : {2, 3, 8}) {
        const auto thrown = on_ranks(ranks, [&](cuda::HostLink& link, int rank) {
            for (const std::size_t size : {0U, 1U, 100'000U}) {
                const auto all = link.all_gather(std::string(size, static_cast<char>('a' + rank)), "a test");
                REQUIRE(all.size() == static_cast<std::size_t>(ranks));
                for (int r = 0; r < ranks; ++r)
                    CHECK(all[static_cast<std::size_t>(r)] == std::string(size, static_cast<char>('a' + r)));
                if (size == 0) link.check();
            }
        });
        for (const std::string& text : thrown) CHECK(text == "");
    }
}

TEST_CASE("what one rank says when it fails is what all say") {
    const auto thrown = on_ranks(3, [](cuda::HostLink& link, int rank) {
        link.all_gather("", "the start");
        if (rank == 2) {
            link.fail("rank 2 (GPU 2): GPU memory: too small");
            std::this_thread::sleep_for(200ms);
            return;
        }
        link.all_gather("", "step 7");
    });
    CHECK(thrown[0] == "ranks: rank 2 (GPU 2): GPU memory: too small");
    CHECK(thrown[1] == thrown[0]);
}

TEST_CASE("a rank that has ended is named, also by one that only waits for its GPU") {
    const auto gathers = on_ranks(3, [](cuda::HostLink& link, int rank) {
        link.all_gather("", "the start");
        if (rank == 1) return;
        link.all_gather("", "step 7");
    });
    CHECK(gathers[0] == "ranks: rank 1 has ended");
    CHECK(gathers[2] == gathers[0]);
    const auto waits = on_ranks(2, [](cuda::HostLink& link, int rank) {
        link.all_gather("", "the start");
        for (int i = 0; rank == 0 && i < 100; ++i) {
            std::this_thread::sleep_for(20ms);
            link.check();
        }
    });
    CHECK(waits[0] == "ranks: rank 1 has ended");
}

TEST_CASE("a rank that does not answer is named after the timeout") {
    const auto start = std::chrono::steady_clock::now();
    const auto thrown = on_ranks(
        3,
        [](cuda::HostLink& link, int rank) {
            link.all_gather("", "the start");
            if (rank == 1) {
                std::this_thread::sleep_for(3s);
                return;
            }
            link.all_gather("", "the records of step 7");
        },
        500ms);
    CHECK(thrown[0] == "ranks: rank 1 did not reach the records of step 7 within 0.5 s");
    CHECK(thrown[2] == thrown[0]);
    CHECK(std::chrono::steady_clock::now() - start < 10s);  // a watchdog
}

TEST_CASE("ranks that are at different calls never mix their bytes") {
    const auto thrown = on_ranks(2, [](cuda::HostLink& link, int rank) {
        link.all_gather("", rank == 0 ? "the records of step 7" : "the end of step 7");
    });
    CHECK(thrown[0] == "ranks: rank 1 is at the end of step 7, rank 0 at the records of step 7");
    CHECK(thrown[1] == thrown[0]);
}

TEST_CASE("ranks of different trainings and versions, and ranks that do not come, are refused") {
    const Work nothing = [](cuda::HostLink&, int) {};
    const auto seeds =
        on_ranks(2, nothing, 5s, {"version 1 --seed 1 --batch 8", "version 1 --seed 2 --batch 8"});
    CHECK(seeds[0] == "ranks: rank 1 was started with '--seed 2', rank 0 with '--seed 1'");
    CHECK(seeds[1] == seeds[0]);
    const auto versions = on_ranks(2, nothing, 5s, {"version 0.1.0 --seed 1", "version 0.2.0 --seed 1"});
    CHECK(versions[0] == "ranks: rank 1 was started with 'version 0.2.0', rank 0 with 'version 0.1.0'");
    const int port = free_port();
    const auto failure = [&](const ProcessRank& own) -> std::string {
        try {
            cuda::make_tcp_link(own, 2, "run", 300ms);
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::backend);
            return error.what();
        }
        return "";
    };
    const std::string place = "127.0.0.1:" + std::to_string(port);
    CHECK(failure({0, 0, "127.0.0.1", port}) ==
          "MASTER_ADDR: rank 1 did not come to " + place + " within 0.3 s");
    CHECK(failure({1, 0, "127.0.0.1", port}) ==
          "MASTER_ADDR: rank 0 cannot be reached at " + place + " (Connection refused)");
    CHECK(failure({1, 0, "no.such.host.invalid", port})
              .starts_with("MASTER_ADDR: rank 0 cannot be reached at no."));
}
