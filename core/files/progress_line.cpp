#include "core/files/progress_line.h"

#include <time.h>
#include <unistd.h>

#include <utility>

#include "core/base/stop.h"
#include "core/files/console.h"

namespace fp8lab {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;          // ns
constexpr std::int64_t kSilent = 2000 * kMillisecond;     // the work may be short
constexpr std::int64_t kOnTerminal = 250 * kMillisecond;  // between two lines
constexpr std::int64_t kElsewhere = 2000 * kMillisecond;

}  // namespace

ProgressLine::ProgressLine(bool shown)
    : shown_(shown), terminal_(shown && ::isatty(STDERR_FILENO) == 1), next_(now_ns() + kSilent) {}

// The clock is exact to a few milliseconds, since loops that take microseconds ask for it.
std::int64_t ProgressLine::now_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return std::int64_t{now.tv_sec} * 1000 * kMillisecond + now.tv_nsec;
}

ProgressLine::~ProgressLine() { erase(); }

void ProgressLine::at(std::string how_far) {
    {
        const std::lock_guard lock{mutex_};
        now_ = std::move(how_far);
    }
    tell_due();
}

void ProgressLine::tell_due() {
    if (!due()) return;
    const std::lock_guard lock{mutex_};
    if (!due() || now_ == told_) return;  // another thread was faster, or there is no news
    next_ = now_ns() + (terminal_ ? kOnTerminal : kElsewhere);
    told_ = now_;
    if (!shown_) return;
    terminal_ ? draw_line(told_) : tell(told_);
}

std::function<void()> ProgressLine::asker() {
    return [this] {
        tell_due();
        end_if_interrupted();
    };
}

void ProgressLine::erase() {
    if (!terminal_) return;
    const std::lock_guard lock{mutex_};
    erase_line();
    told_.clear();
}

}  // namespace fp8lab
