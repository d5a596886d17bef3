#include "core/files/progress_line.h"

#include <unistd.h>

#include <utility>

#include "core/base/stop.h"
#include "core/files/console.h"

namespace fp8lab {
namespace {

constexpr auto kSilent = std::chrono::seconds(2);  // the work may be short
constexpr auto kOnTerminal = std::chrono::milliseconds(250), kElsewhere = std::chrono::milliseconds(2000);

}  // namespace

ProgressLine::ProgressLine()
    : terminal_(::isatty(STDERR_FILENO) == 1), next_((Clock::now() + kSilent).time_since_epoch().count()) {}

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
    next_ = (Clock::now() + (terminal_ ? kOnTerminal : kElsewhere)).time_since_epoch().count();
    told_ = now_;
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
