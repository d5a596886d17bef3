// Passes values from one writing thread to one reading thread; a newer value replaces one that was not taken.
// The mutex is held only for a move, so neither thread waits for a step or frame of the other.
#pragma once

#include <mutex>
#include <optional>
#include <utility>

namespace fp8lab {

template <class T>
class Latest {
  public:
    void publish(T value) {
        std::lock_guard lock{mutex_};
        slot_ = std::move(value);
    }
    std::optional<T> take() {
        std::lock_guard lock{mutex_};
        return std::exchange(slot_, std::nullopt);
    }

  private:
    std::mutex mutex_;
    std::optional<T> slot_;
};

}  // namespace fp8lab
