// What a lab computes from its parameters: one Job that is asked again when what it is computed from has changed.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "core/threads/job.h"

namespace fp8lab::table {

// When a result is computed.
enum class When {
    shown,    // while the experiment is shown
    once,     // in a window also once before, for what sums up all experiments
    at_once,  // as shown, and the first in the constructor: figures and metrics need a result
    in_frame,  // while it is shown, in the frame of the edit: it takes less than a frame, and a handle moves with it
};

// A computation as TableLab sees it.
class Part {
  public:
    // `of`: the experiments that need the result, as in Row; empty: every one.
    Part(std::string_view of, When when) : of_(of), when_(when) {}
    virtual ~Part() = default;
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

    std::string_view of() const { return of_; }
    When when() const { return when_; }
    virtual bool busy() const = 0;
    virtual void start_worker(std::function<void()> wake) = 0;
    // Asks for the result of the present parameters where it is wanted, and takes the one that is ready. Throws what
    // the computation threw for the present parameters; what that of a hidden experiment threw is told when it is
    // shown again.
    virtual void refresh(bool shown, bool in_window) = 0;

  private:
    std::string_view of_;
    When when_;
};

// `spec` picks from the parameters what the result depends on, and gives nothing where none is wanted: the result is then
// Result{}. `work` computes it and uses nothing else.
template <class Spec, class Result>
class Computed final : public Part {
  public:
    Computed(std::string_view of, std::function<std::optional<Spec>()> spec,
             std::function<Result(const Spec&)> work, When when = When::shown)
        : Part(of, when), spec_(std::move(spec)), job_(std::move(work)) {}

    // Of the last parameters whose result was ready; at first Result{}, or what begin_with() gave.
    const Result& operator*() const { return result_; }
    const Result* operator->() const { return &result_; }

    // For M's constructor: something that takes less time than the first result, and stands for it.
    void begin_with(Result result) { result_ = std::move(result); }

    bool busy() const override { return job_.busy(); }
    void start_worker(std::function<void()> wake) override {
        if (when() != When::in_frame) job_.start_worker(std::move(wake));
    }
    void refresh(bool shown, bool in_window) override {
        const bool early = when() == When::once && in_window;
        if (!shown && !early) return;
        std::optional<Spec> now = spec_();
        if (!now) {
            asked_.reset();
            result_ = {};
            return;
        }
        if (shown ? asked_ != now : !asked_) job_.request(*(asked_ = std::move(now)));
        if (auto taken = job_.take()) result_ = std::move(*taken);
    }

  private:
    std::function<std::optional<Spec>()> spec_;
    std::optional<Spec> asked_;
    Job<Spec, Result> job_;
    Result result_{};
};

// What follows from the results before it, in no time: made anew in each update.
class Derived final : public Part {
  public:
    explicit Derived(std::function<void()> work) : Part("", When::shown), work_(std::move(work)) {}
    bool busy() const override { return false; }
    void start_worker(std::function<void()>) override {}
    void refresh(bool, bool) override { work_(); }

  private:
    std::function<void()> work_;
};

}  // namespace fp8lab::table
