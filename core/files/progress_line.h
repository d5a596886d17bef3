// Shows on stderr how far long work is. Nothing is printed in its first two seconds, then one line every two seconds.
// On a terminal there is one line that is drawn anew four times a second and removed at the end.
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
    // shown: else nothing is printed; the rest is as always.
    explicit ProgressLine(bool shown = true);
    ~ProgressLine();
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;

    // Sets the text: the part that begins, or how many are done. Printed when a line is due, here or by asker().
    void at(std::string how_far);
    // Whether a line is due: ask it before making a text that takes time. Cheap; any thread.
    bool due() const { return now_ns() >= next_.load(std::memory_order_relaxed); }
    // For AskBetween: prints the line that is due, then throws Interrupted where a signal has come.
    std::function<void()> asker();
    // Takes the drawn line from the terminal, before something is written to stdout.
    void erase();

  private:
    static std::int64_t now_ns();
    void tell_due();

    const bool shown_, terminal_;
    std::atomic<std::int64_t> next_;  // by now_ns()
    std::mutex mutex_;                // of what follows
    std::string now_, told_;
};

}  // namespace fp8lab
