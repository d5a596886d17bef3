#include "core/threads/job.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"

using namespace fp8lab;

namespace {

// A worker that waits in the middle of its work until it is told to go on.
struct Gate {
    std::promise<void> begun, open;
    int times_ten(int request, std::vector<int>& computed) {  // request 1 waits
        computed.push_back(request);
        if (request == 1) {
            begun.set_value();
            open.get_future().wait();
        }
        return 10 * request;
    }
};

template <class Request, class Result>
std::optional<Result> wait_for(Job<Request, Result>& job) {
    while (job.busy()) std::this_thread::yield();
    return job.take();
}

int half(const int& number) {
    if (number % 2 != 0) throw input_error("half", std::to_string(number) + " is odd");
    return number / 2;
}

}  // namespace

TEST_CASE("a job without a thread of its own has its result when request() returns, and gives it once") {
    Job<int, int> job(half);
    CHECK_FALSE(job.take());
    job.request(8);
    CHECK_FALSE(job.busy());
    CHECK(job.take() == 4);
    CHECK_FALSE(job.take());
}

TEST_CASE("what the work throws is thrown by every take() until another request is done") {
    for (const bool worker : {false, true}) {
        CAPTURE(worker);
        Job<int, int> job(half);
        if (worker) job.start_worker({});
        job.request(7);
        CHECK_THROWS_WITH_AS(wait_for(job), "half: 7 is odd", Error);
        CHECK_THROWS_WITH_AS(job.take(), "half: 7 is odd", Error);
        job.request(6);
        CHECK(wait_for(job) == 3);
        CHECK_FALSE(job.take());
    }
}

TEST_CASE("of the requests that come while one is at work only the newest is computed") {
    Gate gate;
    std::vector<int> computed;
    Job<int, int> job([&](const int& request) { return gate.times_ten(request, computed); });
    std::atomic<int> wakes = 0;
    job.start_worker([&] { ++wakes; });
    job.request(1);
    gate.begun.get_future().wait();
    for (int request = 2; request <= 9; ++request) job.request(request);
    CHECK(job.busy());
    CHECK_FALSE(job.take());  // nothing is there yet, and asking does not wait for it
    gate.open.set_value();
    CHECK(wait_for(job) == 90);
    CHECK(computed == std::vector{1, 9});
    while (wakes < 2) std::this_thread::yield();
}

TEST_CASE("a worker that is started again goes on with what it has, and wakes the newer one alone") {
    Gate gate;
    std::vector<int> computed;
    Job<int, int> job([&](const int& request) { return gate.times_ten(request, computed); });
    std::atomic<int> first = 0, second = 0;
    job.start_worker([&] { ++first; });
    job.request(1);
    gate.begun.get_future().wait();
    job.request(2);
    job.start_worker([&] { ++second; });
    CHECK(job.busy());
    gate.open.set_value();
    CHECK(wait_for(job) == 20);
    while (second < 2) std::this_thread::yield();
    CHECK(first == 0);
    CHECK(computed == std::vector{1, 2});
}

TEST_CASE("a job may go while it is at work: what waits is dropped") {
    Gate gate;
    std::atomic<int> computed = 0;
    {
        Job<int, int> job([&](const int& request) {
            gate.begun.set_value();
            gate.open.get_future().wait();
            ++computed;
            return request;
        });
        job.start_worker({});
        job.request(1);
        gate.begun.get_future().wait();
        job.request(2);
        std::jthread opener([&] { gate.open.set_value(); });
    }
    CHECK(computed == 1);
}

TEST_CASE("work on a worker gives way to the window's thread, work inline does not") {
    Job<int, int> job([](const int&) { return getpriority(PRIO_PROCESS, 0); });
    const int here = getpriority(PRIO_PROCESS, 0);
    job.request(0);
    CHECK(job.take() == here);
    job.start_worker({});
    job.request(0);
    while (job.busy()) std::this_thread::yield();
    CHECK(job.take() == std::min(here + 10, 19));
    CHECK(getpriority(PRIO_PROCESS, 0) == here);
}

TEST_CASE("a new request is not met with the failure of the one before") {
    std::atomic<bool> go = false;
    Job<int, int> job([&](const int& x) {
        if (x < 0) throw std::runtime_error("negative");
        while (!go) std::this_thread::yield();
        return x;
    });
    job.start_worker({});
    job.request(-1);
    while (job.busy()) std::this_thread::yield();
    CHECK_THROWS_AS(job.take(), std::runtime_error);
    CHECK_THROWS_AS(job.take(), std::runtime_error);
    job.request(3);
    CHECK_FALSE(job.take().has_value());
    go = true;
    while (job.busy()) std::this_thread::yield();
    CHECK(job.take() == 3);
}

TEST_CASE("the failure of a request that another has replaced while it was at work is not thrown") {
    Gate first, second;
    Job<int, int> job([&](const int& request) {
        Gate& gate = request == 1 ? first : second;
        gate.begun.set_value();
        gate.open.get_future().wait();
        return half(request);
    });
    job.start_worker({});
    job.request(1);
    first.begun.get_future().wait();
    job.request(2);
    first.open.set_value();
    second.begun.get_future().wait();  // what the first threw is there
    CHECK_FALSE(job.take());
    second.open.set_value();
    CHECK(wait_for(job) == 1);
}
