// A computation that takes longer than a frame. A lab requests it, shows the old result meanwhile, and takes
// the new one when it is ready. At most one request waits while another one is computed; a newer request
// replaces it.
//
//   Job<Params, Outcome> job_{[](const Params& params) { return compute(params); }};
//   void set_wake(std::function<void()> wake) override { job_.start_worker(std::move(wake)); }
//   void update() override {
//       if (asked_ != params_) job_.request(asked_ = params_);
//       if (auto outcome = job_.take()) outcome_ = std::move(*outcome);
//   }
//   bool busy() const override { return job_.busy(); }
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "core/threads/ask.h"
#include "core/threads/latest.h"
#include "core/threads/parallel.h"
#include "core/threads/wake.h"

namespace fp8lab {

// Used from one thread. Without start_worker() a request is computed before request() returns, as the command
// line and tests need it. `work` must not use anything that its owner may change: all its input is in the
// request.
template <class Request, class Result>
class Job {
  public:
    explicit Job(std::function<Result(const Request&)> work) : work_(std::move(work)) {}
    ~Job() { stop(); }
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    // From now on requests are computed on a worker thread; `wake` (may be empty) is called on that thread
    // when a result can be taken. Called again it replaces `wake` alone: what is computed, or waits, goes on.
    void start_worker(std::function<void()> wake) {
        wake_.set(std::move(wake));
        if (!worker_.joinable())
            worker_ = std::jthread([this](const std::stop_token& token) { serve(token); });
    }

    // Forgets an earlier failure: it belongs to an older request.
    void request(Request request) {
        failure_ = nullptr;
        ++asked_;
        if (!worker_.joinable()) return finish(request, asked_);
        {
            std::lock_guard lock{mutex_};
            waiting_ = Waiting{std::move(request), asked_};
        }
        ready_.notify_one();
    }

    // The newest result, once. If `work` threw for the newest request, throws that exception in every call until the
    // next request(): a lab whose update() calls this stops until its parameters change. What it threw for an older
    // request, which was under way when the newest came, is dropped.
    std::optional<Result> take() {
        if (std::optional<Outcome> outcome = done_.take()) {
            if (outcome->number == asked_) failure_ = outcome->failure;
            if (outcome->result) return std::move(outcome->result);
        }
        if (failure_) std::rethrow_exception(failure_);
        return std::nullopt;
    }

    // Whether a request waits or is being computed: the last result of take() then belongs to older parameters.
    bool busy() const {
        std::lock_guard lock{mutex_};
        return waiting_.has_value() || working_;
    }

  private:
    struct Waiting {
        Request request;
        long number;
    };
    struct Outcome {
        std::optional<Result> result = {};
        std::exception_ptr failure = {};
        long number;  // of its request
    };

    void finish(const Request& request, long number) {
        Outcome outcome{.number = number};
        try {
            outcome.result.emplace(work_(request));
        } catch (...) {
            outcome.failure = std::current_exception();
        }
        done_.publish(std::move(outcome));
    }

    void serve(const std::stop_token& token) {
        lower_priority();
        const AskBetween ask([&token] {
            if (token.stop_requested()) throw Cancelled();
        });
        std::unique_lock lock{mutex_};
        while (ready_.wait(lock, token, [this] { return waiting_.has_value(); }) && !token.stop_requested()) {
            const Waiting next = std::move(*std::exchange(waiting_, std::nullopt));
            working_ = true;
            lock.unlock();
            finish(next.request, next.number);
            lock.lock();
            working_ = false;
            lock.unlock();
            wake_();
            lock.lock();
        }
    }

    // Ends the computation under way in its next loop and drops the request that waits.
    void stop() {
        worker_.request_stop();
        if (worker_.joinable()) worker_.join();
        waiting_.reset();
    }

    std::function<Result(const Request&)> work_;
    mutable std::mutex mutex_;  // of waiting_ and working_
    std::condition_variable_any ready_;
    std::optional<Waiting> waiting_;
    bool working_ = false;
    Latest<Outcome> done_;
    std::exception_ptr failure_;
    long asked_ = 0;  // requests
    Wake wake_;
    std::jthread worker_;
};

}  // namespace fp8lab
