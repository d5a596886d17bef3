// How long work is ended, or reports how far it is, without knowing who asks for that.
//
//   const AskBetween ask([&] { if (token.stop_requested()) throw Cancelled(); });
//   multiply_nt(a, b, out);  // throws Cancelled soon after the request; `out` is then unfinished
#pragma once

#include <exception>
#include <functional>

namespace fp8lab {

// Thrown to cancel work whose result is not needed any more.
class Cancelled final : public std::exception {
  public:
    const char* what() const noexcept override { return "cancelled"; }
};

// While an object of this class exists, every parallel_for() of its thread, and every loop inside one, calls `ask`
// before each of its parts, on the thread that takes the part. A part is at most 1/64 of its loop, cut at a multiple of
// the grain, so that no result changes: of a loop that takes ten seconds `ask` is called six times a second. What `ask`
// throws ends the loop, and parallel_for() rethrows it. Only the newest object of a thread is asked; one without `ask`
// lets loops run to their ends. Objects are destroyed in the reverse order, on the thread that made them.
class AskBetween {
  public:
    explicit AskBetween(std::function<void()> ask = {});
    ~AskBetween();
    AskBetween(const AskBetween&) = delete;
    AskBetween& operator=(const AskBetween&) = delete;
    void operator()() const { ask_(); }

  private:
    std::function<void()> ask_;
    const AskBetween* outer_;
};

// Calls the `ask` of this thread, if there is one: for long work that is no parallel_for().
void ask_between();

}  // namespace fp8lab
