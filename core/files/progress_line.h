// How far long work is, on stderr: nothing within its first two seconds, then a line every two seconds; on a terminal one
// line that is drawn anew four times a second and taken away at the end.
//
//   ProgressLine progress;
//   const AskBetween ask(progress.asker());
//   for (const File& file : files) {
//       progress.at(fmt::format("check: {} of {} files", done, files.size()));
//       work(file);
//   }
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

namespace fp8lab {

class ProgressLine {
  public:
    ProgressLine();
    ~ProgressLine();
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;

    // The part that begins, or how many are done. It is told when a line is due: here, or during the part by asker().
    void at(std::string how_far);
    // A line is due: for a text that takes time to make. Cheap; any thread.
    bool due() const { return now_ns() >= next_.load(std::memory_order_relaxed); }
    // For AskBetween: tells what is due, then ends the work where a signal has asked for that (Interrupted).
    std::function<void()> asker();
    // Takes the drawn line from the terminal, before something is written to stdout.
    void erase();

  private:
    static std::int64_t now_ns();
    void tell_due();

    const bool terminal_;
    std::atomic<std::int64_t> next_;  // by now_ns()
    std::mutex mutex_;                // of what follows
    std::string now_, told_;
};

}  // namespace fp8lab
