// What a trainer prepares, as progress on stderr: a line when the last one is a second old, so that nothing
// is said where nothing takes long. A signal ends it before its next part.
#pragma once

#include <chrono>

#include "core/base/stop.h"
#include "core/files/console.h"
#include "core/train/preparation.h"

namespace fp8lab::cli {

inline Preparation told_on_stderr() {
    using Clock = std::chrono::steady_clock;
    return {[told = Clock::now()](const std::string& what) mutable {
                end_if_interrupted();
                const auto now = Clock::now();
                if (!what.empty() && now - told < std::chrono::seconds(1)) return;
                told = now;
                if (!what.empty()) tell("preparing " + what);
            },
            {}};
}

}  // namespace fp8lab::cli
