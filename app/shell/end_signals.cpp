#include "app/shell/end_signals.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "core/base/error.h"

namespace fp8lab {
namespace {

constexpr int kSignals[] = {SIGTERM, SIGINT, SIGHUP};

// A handler can reach nothing else.
std::atomic<int> g_pipe = -1;

void tell(int) {
    const char byte = 's';
    [[maybe_unused]] const ssize_t written = ::write(g_pipe, &byte, 1);
}

}  // namespace

EndSignals::EndSignals(std::function<void()> ended) {
    if (::pipe2(pipe_, O_CLOEXEC) != 0) throw Error{ErrorKind::failed, "window", "no pipe for signals"};
    listener_ = std::thread([fd = pipe_[0], ended = std::move(ended)] {
        for (char byte = 0; ::read(fd, &byte, 1) == 1 && byte == 's';) ended();
    });
    g_pipe = pipe_[1];
    for (const int number : kSignals) ::signal(number, tell);
}

EndSignals::~EndSignals() {
    for (const int number : kSignals) ::signal(number, SIG_DFL);
    const char byte = 'e';
    [[maybe_unused]] const ssize_t written = ::write(pipe_[1], &byte, 1);
    listener_.join();
    g_pipe = -1;
    ::close(pipe_[0]);
    ::close(pipe_[1]);
}

}  // namespace fp8lab
