// The one hand-over between threads: newest value wins, one writer, one reader. The mutex is held for a move,
// never for work, so neither side waits for the other's step or frame.
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
