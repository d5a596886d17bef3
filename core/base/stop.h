// SIGINT, SIGTERM and SIGHUP: the process is asked to end.
//
// By default the handler ends the process at once: it removes temporary files, writes one line to stderr, and
// exits with 128 + the signal (130, 143, 129). Work that has results to save makes an Interruptible and asks
// between its parts:
//
//   const Interruptible keeps;
//   while (more() && !interrupted()) part();
//   save();
//   end_if_interrupted("after 3 of 5 parts; they are saved");
//
// It asks at least four times a second. Parts that take longer are ended in their midst (core/threads/ask.h): their
// loops throw Interrupted,
//
//   const AskBetween ask([] { end_if_interrupted(); });
//   try { while (more()) part(); } catch (const Interrupted&) {}  // the part at hand is lost
//
// A second signal ends the process at once in any case.
#pragma once

#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

namespace fp8lab {

// Installs the handlers. `doing` ("train"; may be empty) is part of the line on stderr. A signal that was
// ignored when the process started (nohup, a background job of a script) stays ignored.
void handle_end_signals(const std::string& doing);

// While an object of this class exists, the first signal only makes interrupted() true.
class Interruptible {
  public:
    Interruptible();
    ~Interruptible();
    Interruptible(const Interruptible&) = delete;
    Interruptible& operator=(const Interruptible&) = delete;
};

// The same for work that waits: a thread of its own calls `asked` once, also for a signal that came earlier. Only one
// object may exist at a time.
class InterruptListener {
  public:
    explicit InterruptListener(std::function<void()> asked);
    ~InterruptListener();
    InterruptListener(const InterruptListener&) = delete;
    InterruptListener& operator=(const InterruptListener&) = delete;

  private:
    Interruptible keeps_;
    int pipe_[2] = {-1, -1};
    std::thread listener_;
};

// True once the process was asked to end, also after the Interruptible was destroyed. Cheap; any thread.
bool interrupted() noexcept;

// The name of that signal: "SIGINT". Empty: there was none.
std::string end_signal_name();

// Thrown to end the program with exit code 128 + the signal. what() says how much was done and completes the
// message "ended by SIGINT ...".
class Interrupted final : public std::exception {
  public:
    explicit Interrupted(std::string how_far);
    const char* what() const noexcept override { return how_far_.c_str(); }
    int exit_code() const { return exit_code_; }

  private:
    std::string how_far_;
    int exit_code_;
};

// Throws Interrupted(how_far) if the process was asked to end.
void end_if_interrupted(const std::string& how_far = {});

// The last line on stderr, a terminal, has no end yet: what comes next takes its place, written behind kOverLine. Returns
// what was set before.
bool set_open_line(bool open) noexcept;
inline constexpr std::string_view kOverLine = "\r\x1b[K";

// The name of a file that is removed when a signal ends the process. Make this object before the file;
// destroy this object after the file was renamed.
class RemovedAtEnd {
  public:
    explicit RemovedAtEnd(const std::filesystem::path& path);
    ~RemovedAtEnd();
    RemovedAtEnd(const RemovedAtEnd&) = delete;
    RemovedAtEnd& operator=(const RemovedAtEnd&) = delete;
    const char* path() const { return path_.c_str(); }

  private:
    std::string path_;
    int slot_ = -1;  // -1: all slots are in use; the file is then not removed
};

}  // namespace fp8lab
