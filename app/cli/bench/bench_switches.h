// The part of `bench ui` that changes switches.
#pragma once

#include <functional>

#include "app/cli/bench/bench.h"

namespace fp8lab {
class WindowLoop;
}

namespace fp8lab::cli {

// WindowLoop::run_until(). Throws Interrupted, or Error{failed} where the window is closed before.
void wait_until(WindowLoop& loop, const std::function<bool()>& done);

// Every choice of every switch and list of L12, `repeats` times: from the choice to the pixels of the figures that
// follow from it, those that are computed apart included. {field: {median_ms, largest_ms, ..., slowest: choice}}.
// "seed" beside them: another seed, which draws everything anew.
nlohmann::json time_switches(WindowLoop& loop, int repeats);

}  // namespace fp8lab::cli
