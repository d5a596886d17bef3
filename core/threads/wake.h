// What a worker calls to tell that there is something new, and who starts it may replace at any time.
#pragma once

#include <functional>
#include <mutex>
#include <utility>

namespace fp8lab {

class Wake {
  public:
    // Waits for a call under way: afterwards the earlier function is not called any more. Empty: nothing is called.
    void set(std::function<void()> call) {
        std::lock_guard lock{mutex_};
        call_ = std::move(call);
    }
    // The function must not call set().
    void operator()() {
        std::lock_guard lock{mutex_};
        if (call_) call_();
    }

  private:
    std::mutex mutex_;
    std::function<void()> call_;
};

}  // namespace fp8lab
