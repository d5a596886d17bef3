// Progress and cancellation while a trainer is built or a recipe changes: on a GPU this takes seconds for a
// shape that is new.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "core/threads/ask.h"

namespace fp8lab {

struct Preparation {
    std::function<void(const std::string&)> tell;  // gets the current part, "" at its end; may be empty
    std::stop_token stop;

    // Call before every part of the work, which takes a few seconds at most. Throws Cancelled after a request
    // to stop.
    void begin(const std::string& what) const {
        if (stop.stop_requested()) throw Cancelled();
        if (tell) tell(what);
    }
    void end() const {
        if (tell) tell({});
    }
};

}  // namespace fp8lab
