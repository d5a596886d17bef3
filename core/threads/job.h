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

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include "core/threads/ask.h"
#include "core/threads/latest.h"
#include "core/threads/wake.h"
#include "core/threads/worker.h"

namespace fp8lab {

// Used from one thread. Without start_worker() a request is computed before request() returns, as the command
// line and tests need it. `work` must not use anything that its owner may change: all its input is in the
// request.
template <class Request, class Result>
class Job {
  public:
    explicit Job(std::function<Result(const Request&)> work) : work_(std::move(work)) {}
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    // From now on requests are computed by a worker (worker.h), which the first of them makes; `wake` (may be empty) is
    // called there when a result can be taken. Called again it replaces `wake` alone: what is computed, or waits, goes on.
    void start_worker(std::function<void()> wake) {
        wake_.set(std::move(wake));
        has_worker_ = true;
    }

    // Forgets an earlier failure: it belongs to an older request. Throws as Worker's constructor does.
    void request(Request request) {
        failure_ = nullptr;
        ++asked_;
        if (!has_worker_) return finish(request, asked_);
        {
            std::lock_guard lock{mutex_};
            waiting_ = Waiting{std::move(request), asked_};
        }
        if (worker_)
            worker_->notify();
        else
            worker_.emplace([this](const std::stop_token& stop) { return turn(stop); });
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

    // Ended by the worker's end in its next loop.
    Worker::Clock::time_point turn(const std::stop_token& stop) {
        std::optional<Waiting> next;
        {
            std::lock_guard lock{mutex_};
            if (stop.stop_requested() || !waiting_) return Worker::kAsleep;
            next = std::exchange(waiting_, std::nullopt);
            working_ = true;
        }
        const AskBetween ask([&stop] {
            if (stop.stop_requested()) throw Cancelled();
        });
        finish(next->request, next->number);
        {
            std::lock_guard lock{mutex_};
            working_ = false;
        }
        wake_();
        return Worker::kAtOnce;
    }

    std::function<Result(const Request&)> work_;
    mutable std::mutex mutex_;  // of waiting_ and working_
    std::optional<Waiting> waiting_;
    bool working_ = false;
    Latest<Outcome> done_;
    std::exception_ptr failure_;
    long asked_ = 0;  // requests
    Wake wake_;
    bool has_worker_ = false;
    std::optional<Worker> worker_;  // the last member: it ends before what it uses
};

}  // namespace fp8lab
