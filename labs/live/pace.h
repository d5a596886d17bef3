// How long a training takes: the seconds of a step, measured while it runs.
#pragma once

#include <chrono>
#include <optional>
#include <string>

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

}  // namespace fp8lab::live
