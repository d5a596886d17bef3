// A computation of seconds: it tells how far it is and what it has so far, ends as soon as newer parameters come, and can be
// stopped. Otherwise as Computed (computed.h).
//
//   table::Long<Spec, Result> draft{"draft", [this] { return params.draft_spec(); },
//                                   [](const Spec& spec, const table::Told<Result>& told) {
//                                       ... told.share(done, of) ... told.so_far(result) ... return result;
//                                   }};
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "core/threads/ask.h"
#include "core/threads/job.h"
#include "core/threads/latest.h"
#include "core/threads/wake.h"
#include "labs/table/computed.h"

namespace fp8lab::table {

// What the work calls while it runs, from its thread.
template <class Result>
struct Told {
    std::function<void(std::size_t done, std::size_t of)> share;
    std::function<void(Result)> so_far;  // shown until the next one
};

template <class Spec, class Result>
class Long final : public Part {
  public:
    using Work = std::function<Result(const Spec&, const Told<Result>&)>;

    // `spec` and `when` as of Computed; When::in_frame is not for work of seconds.
    Long(std::string_view of, std::function<std::optional<Spec>()> spec, Work work, When when = When::shown)
        : Part(of, when),
          spec_(std::move(spec)),
          job_([state = state_, work = std::move(work)](const Request& request) {
              return run(*state, work, request);
          }) {}
    ~Long() override { state_->number = -1; }

    // Of the last parameters of which anything was told; at first Result{}.
    const Result& operator*() const { return result_; }
    const Result* operator->() const { return &result_; }

    bool busy() const override { return job_.busy(); }
    double share() const { return state_->share; }    // done, 0 to 1
    bool stopped() const { return stopped_; }         // by stop(), before its end
    bool is_old() const { return told_ != number_; }  // nothing was told of the present parameters yet
    void stop() {
        if (!busy()) return;
        state_->number = -1;
        stopped_ = true;
    }
    void resume() { asked_.reset(); }  // from the start, in the next update

    void start_worker(std::function<void()> wake) override {
        state_->wake.set(wake);
        state_->has_worker = true;
        job_.start_worker(std::move(wake));
    }
    void refresh(bool shown, bool in_window) override {
        const bool early = when() == When::once && in_window;
        if (!shown && !early) return;
        std::optional<Spec> now = spec_();
        if (!now) {
            state_->number = -1;
            asked_.reset();
            result_ = {}, told_ = number_;
            return;
        }
        if (shown ? asked_ != now : !asked_) begin(std::move(*now));
        const auto keep = [this](Numbered& told) {
            if (told.number == number_) result_ = std::move(told.result), told_ = number_;
        };
        // The end is asked for first: what was told before it must not replace it.
        auto taken = job_.take();
        auto so_far = state_->so_far.take();
        if (taken && *taken)
            keep(**taken);
        else if (so_far)
            keep(*so_far);
    }

  private:
    struct Request {
        Spec spec;
        long number;
    };
    struct Numbered {
        Result result;
        long number;  // of its request
    };
    struct State {
        std::atomic<long> number = -1;  // of the request that is wanted; -1: none
        std::atomic<double> share = 0;
        std::atomic<bool> has_worker = false;
        Latest<Numbered> so_far;
        Wake wake;
        std::chrono::steady_clock::time_point woken;  // of the worker
    };

    void begin(Spec spec) {
        asked_ = spec;
        stopped_ = false;
        state_->share = 0;
        state_->number = ++number_;
        job_.request({std::move(spec), number_});
    }
    static void wake(State& state) {
        constexpr auto kPause = std::chrono::milliseconds(100);
        const auto now = std::chrono::steady_clock::now();
        if (now - state.woken < kPause) return;
        state.woken = now;
        state.wake();
    }
    // Nothing where it was ended.
    static std::optional<Numbered> run(State& state, const Work& work, const Request& request) {
        const auto ended = [&] { return state.number != request.number; };
        const Told<Result> told{.share =
                                    [&](std::size_t done, std::size_t of) {
                                        if (ended()) throw Cancelled();
                                        state.share = static_cast<double>(done) / static_cast<double>(of);
                                        wake(state);
                                    },
                                .so_far =
                                    [&](Result result) {
                                        state.so_far.publish({std::move(result), request.number});
                                        wake(state);
                                    }};
        if (!state.has_worker) return Numbered{work(request.spec, told), request.number};
        const AskBetween ask([&] {
            if (ended()) throw Cancelled();
        });
        try {
            return Numbered{work(request.spec, told), request.number};
        } catch (const Cancelled&) {
            return std::nullopt;
        }
    }

    std::shared_ptr<State> state_ = std::make_shared<State>();
    std::function<std::optional<Spec>()> spec_;
    std::optional<Spec> asked_;
    Job<Request, std::optional<Numbered>> job_;
    Result result_{};
    long number_ = 0, told_ = 0;
    bool stopped_ = false;
};

}  // namespace fp8lab::table
