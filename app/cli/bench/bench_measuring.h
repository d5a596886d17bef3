// The part of `bench ui` that measures in L9 on a GPU.
#pragma once

#include "app/cli/bench/bench.h"

namespace fp8lab {
class WindowLoop;
}

namespace fp8lab::cli {

// L9's "Measure" of the layer 4096 x 4096 x 4096 on this machine's GPU, three times, with a frame drawn after the
// other meanwhile: {first_number_ms (from the action to the first time of a product, half a second of load
// included), frames_to_pixels}. Null without a GPU.
nlohmann::json time_measuring(WindowLoop& loop);

}  // namespace fp8lab::cli
