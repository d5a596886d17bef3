// A value, or a sentence that says why there is none: for failures that are normal (a machine without a GPU).
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace fp8lab {

struct Unavailable {
    std::string reason;
};

template <class T>
class Result {
  public:
    Result(T value) : state_(std::move(value)) {}
    Result(Unavailable why) : state_(std::move(why)) {}
    explicit operator bool() const { return std::holds_alternative<T>(state_); }
    T& value() { return std::get<T>(state_); }
    const std::string& reason() const { return std::get<Unavailable>(state_).reason; }

  private:
    std::variant<T, Unavailable> state_;
};

}  // namespace fp8lab
