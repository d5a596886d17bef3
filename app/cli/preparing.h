// What a trainer prepares, as progress on stderr: a line when the last one is a second old, so that nothing
// is said where nothing takes long.
#pragma once

#include <fmt/format.h>

#include <chrono>

#include "core/nn/preparation.h"

namespace fp8lab::cli {

inline Preparation told_on_stderr() {
    using Clock = std::chrono::steady_clock;
    return {[told = Clock::now()](const std::string& what) mutable {
                const auto now = Clock::now();
                if (!what.empty() && now - told < std::chrono::seconds(1)) return;
                told = now;
                if (!what.empty()) fmt::print(stderr, "preparing {}\n", what);
            },
            {}};
}

}  // namespace fp8lab::cli
