// The part of `bench ui` that drags sliders.
#pragma once

#include "app/cli/bench/bench.h"

namespace fp8lab {
class WindowLoop;
}

namespace fp8lab::cli {

// Every slider of every lab, of both tiers of the panel, dragged from end to end and back, with the lab as
// large as 1 Mi elements where it has a size. {control: {median_ms, largest_ms, ..., recomputed: {...}}} by
// scene: "error", or "adding dot" for the settings of one experiment.
nlohmann::json time_sliders(WindowLoop& loop, int repeats);

}  // namespace fp8lab::cli
