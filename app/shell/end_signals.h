// SIGTERM, SIGINT, SIGHUP: the session ends, and the window closes as if by hand.
#pragma once

#include <functional>
#include <thread>

namespace fp8lab {

// While it lives. `ended` is called from a thread of its own, once for each signal. One at a time.
class EndSignals {
  public:
    explicit EndSignals(std::function<void()> ended);
    ~EndSignals();
    EndSignals(const EndSignals&) = delete;
    EndSignals& operator=(const EndSignals&) = delete;

  private:
    int pipe_[2] = {-1, -1};
    std::thread listener_;
};

}  // namespace fp8lab
