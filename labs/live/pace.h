// How long a training takes, and how far it goes: what labs that train show in their row of buttons besides the step.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "labs/live/recorded_run.h"

namespace fp8lab::live {

// Fed with what a lab sees at each update(). The mean is over the stretch at hand, from where it began to run to the
// newest step; until that has a step, and while nothing runs, it is that of the stretch before.
class Pace {
  public:
    using Clock = std::chrono::steady_clock;
    // trains: between this call and the next steps are trained without a rest.
    void see(int step, bool trains, Clock::time_point now = Clock::now());
    std::optional<double> seconds_per_step() const { return seconds_; }  // none: nothing was measured yet

  private:
    struct Start {
        int step;
        Clock::time_point at;
    };
    std::optional<Start> start_;
    std::optional<double> seconds_;
};

// "about 40 s", "about 3 min": to 1 s below 10 s, to 5 s below 100 s, else to minutes.
std::string about(double seconds);

// "about 40 s left" and what it was computed from; both empty where nothing is known, or the training is at its end.
struct TimeLeft {
    std::string words = {}, help = {};
};
// `run`: recorded on another machine, or on this one before; null: none. fastest: seconds that a step takes at least,
// because of a limit of the speed.
TimeLeft time_left(int step, int steps, const Pace& pace, const RecordedRun* run, double fastest = 0);

// The step of the action "run to 300"; none: another action.
std::optional<int> run_to_step(std::string_view action);

}  // namespace fp8lab::live
