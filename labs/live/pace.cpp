#include "labs/live/pace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/read_number.h"
#include "core/base/units.h"

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

TimeLeft time_left(int step, int steps, const Pace& pace, const RecordedRun* run, double fastest) {
    if (step >= steps) return {};
    const auto measured = pace.seconds_per_step();
    if (!measured && !run) return {};
    const double each = measured ? *measured : std::max(fastest, run->seconds / run->steps());
    const std::string per_step =
        fmt::format("{} steps of {} ms", group_thousands(steps - step), format_number(1000 * each, 2, true));
    TimeLeft out{.words = about(each * (steps - step)) + (step > 0 ? " left" : "")};
    if (measured)
        out.help = per_step + ", as measured here since the training last started to run.";
    else
        out.help = fmt::format("{}, as recorded on {}, {}. This machine was not measured yet.", per_step,
                               run->machine, run->date);
    return out;
}

std::optional<int> run_to_step(std::string_view action) {
    constexpr std::string_view kRunTo = "run to ";
    if (!action.starts_with(kRunTo)) return std::nullopt;
    int step = 0;
    return read_number(action.substr(kRunTo.size()), step) ? std::optional(step) : std::nullopt;
}

}  // namespace fp8lab::live
