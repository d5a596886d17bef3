#include "labs/live/pace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fp8lab::live {

void Pace::see(int step, bool trains, Clock::time_point now) {
    if (trains && (!start_ || step < start_->step)) start_ = {step, now};
    // At rest the time since the last step counts for nothing, unless it is all that is known.
    if (start_ && step > start_->step && (trains || !seconds_))
        seconds_ = std::chrono::duration<double>(now - start_->at).count() / (step - start_->step);
    if (!trains) start_.reset();
}

std::string about(double seconds) {
    constexpr double kFine = 10, kCoarse = 100, kMinute = 60;
    if (seconds >= kCoarse)
        return fmt::format("about {:.0f} min", std::max(2.0, std::round(seconds / kMinute)));
    const double unit = seconds < kFine ? 1 : 5;
    return fmt::format("about {:.0f} s", std::max(1.0, std::round(seconds / unit) * unit));
}

}  // namespace fp8lab::live
