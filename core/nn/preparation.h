// What building a trainer, or changing a recipe on its way, tells and asks: on a GPU that meets a shape for
// the first time it takes seconds.
#pragma once

#include <exception>
#include <functional>
#include <stop_token>
#include <string>

namespace fp8lab {

// Thrown out of work that nobody waits for any more.
class Abandoned final : public std::exception {
  public:
    const char* what() const noexcept override { return "abandoned"; }
};

struct Preparation {
    std::function<void(const std::string&)> tell;  // what is at work, "" when it is done; may be empty
    std::stop_token stop;

    // Before every part of the work, of a few seconds at most. Throws Abandoned after a request to stop.
    void begin(const std::string& what) const {
        if (stop.stop_requested()) throw Abandoned();
        if (tell) tell(what);
    }
    void end() const {
        if (tell) tell({});
    }
};

}  // namespace fp8lab
