#include "core/base/stop.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/base/error.h"

namespace fp8lab {
namespace {

struct EndSignal {
    int number;
    std::string_view name;
};
constexpr std::array kEndSignals = {EndSignal{SIGINT, "SIGINT"}, EndSignal{SIGTERM, "SIGTERM"},
                                    EndSignal{SIGHUP, "SIGHUP"}};

// A signal handler may use only these objects, because they are atomic.
struct Temporary {
    std::atomic<bool> taken = false;
    std::atomic<bool> there = false;  // the name is complete
    std::array<char, PATH_MAX> path{};
};
constexpr std::size_t kMostTemporaries = 16;  // one a thread that writes
std::array<Temporary, kMostTemporaries> g_temporaries;
std::atomic<int> g_signal = 0;
std::atomic<int> g_keepers = 0;    // Interruptibles that live
std::atomic<int> g_listener = -1;  // the end of a pipe that an InterruptListener reads
std::atomic<int> g_writing = 0;    // handlers that may be writing to that end
std::atomic<bool> g_open_line = false;
std::array<char, 64> g_doing{};
std::atomic<std::size_t> g_doing_size = 0;

static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

std::string_view name_of(int number) {
    for (const EndSignal& signal : kEndSignals)
        if (signal.number == number) return signal.name;
    return {};
}

// Does not write to a pipe that is full and has no reader: the process would hang there.
void write_stderr(std::string_view text) {
    pollfd out{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&out, 1, 0) != 1) return;
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

[[noreturn]] void end_now(int number) {
    for (const Temporary& file : g_temporaries)
        if (file.there) ::unlink(file.path.data());
    const std::string_view doing(g_doing.data(), g_doing_size);
    std::array<char, 192> line{};  // in one write, so that no other line comes between
    std::size_t size = 0;
    for (const std::string_view part :
         {g_open_line ? kOverLine : std::string_view(), std::string_view("fp8lab: "), doing,
          std::string_view(doing.empty() ? "" : ": "), std::string_view("ended by "), name_of(number),
          std::string_view("\n")}) {
        std::memcpy(line.data() + size, part.data(), part.size());
        size += part.size();
    }
    write_stderr({line.data(), size});
    ::_exit(128 + number);
}

void on_signal(int number) {
    int none = 0;
    const bool first = g_signal.compare_exchange_strong(none, number);
    if (!first || g_keepers == 0) end_now(number);
    const int error_number = errno;
    const char asked = 's';
    ++g_writing;
    if (const int pipe = g_listener; pipe >= 0) {
        [[maybe_unused]] const ssize_t written = ::write(pipe, &asked, 1);
    }
    --g_writing;
    errno = error_number;
}

}  // namespace

void handle_end_signals(const std::string& doing) {
    g_doing_size = 0;
    const std::size_t size = std::min(doing.size(), g_doing.size());
    std::memcpy(g_doing.data(), doing.data(), size);
    g_doing_size = size;
    for (const EndSignal& signal : kEndSignals) {
        struct sigaction now {};
        if (::sigaction(signal.number, nullptr, &now) != 0 || now.sa_handler == SIG_IGN) continue;
        struct sigaction ours {};
        ours.sa_handler = on_signal;
        ours.sa_flags = SA_RESTART;
        sigemptyset(&ours.sa_mask);
        ::sigaction(signal.number, &ours, nullptr);
    }
}

Interruptible::Interruptible() { ++g_keepers; }
Interruptible::~Interruptible() { --g_keepers; }

InterruptListener::InterruptListener(std::function<void()> asked) {
    if (::pipe2(pipe_, O_CLOEXEC) != 0) throw Error{ErrorKind::failed, "signals", system_reason(errno)};
    listener_ = std::thread([fd = pipe_[0], asked = std::move(asked)] {
        char byte = 0;
        if (::read(fd, &byte, 1) == 1 && byte == 's') asked();
    });
    g_listener = pipe_[1];
    if (!interrupted()) return;
    // The signal came before the handler knew the pipe. If the handler writes a second byte, nothing changes.
    const char asked_before = 's';
    [[maybe_unused]] const ssize_t written = ::write(pipe_[1], &asked_before, 1);
}

InterruptListener::~InterruptListener() {
    g_listener = -1;
    const char end = 'e';
    [[maybe_unused]] const ssize_t written = ::write(pipe_[1], &end, 1);
    listener_.join();
    // A handler on another thread may have read g_listener just before. It has counted itself by then, and a later
    // handler finds -1.
    while (g_writing > 0) std::this_thread::yield();
    ::close(pipe_[0]);
    ::close(pipe_[1]);
}

bool set_open_line(bool open) noexcept { return g_open_line.exchange(open); }

bool interrupted() noexcept { return g_signal.load(std::memory_order_relaxed) != 0; }

std::string end_signal_name() { return std::string(name_of(g_signal)); }

Interrupted::Interrupted(std::string how_far) : how_far_(std::move(how_far)), exit_code_(128 + g_signal) {}

void end_if_interrupted(const std::string& how_far) {
    if (interrupted()) throw Interrupted(how_far);
}

RemovedAtEnd::RemovedAtEnd(const std::filesystem::path& path) : path_(path.string()) {
    if (path_.size() >= PATH_MAX) return;  // no system takes such a name
    for (std::size_t i = 0; i < g_temporaries.size() && slot_ < 0; ++i) {
        if (g_temporaries[i].taken.exchange(true)) continue;
        slot_ = static_cast<int>(i);
        std::memcpy(g_temporaries[i].path.data(), path_.c_str(), path_.size() + 1);
        g_temporaries[i].there = true;
    }
}

RemovedAtEnd::~RemovedAtEnd() {
    if (slot_ < 0) return;
    Temporary& file = g_temporaries[static_cast<std::size_t>(slot_)];
    file.there = false;
    file.taken = false;
}

}  // namespace fp8lab
