// A stand-in for the CUDA runtime and for cuBLASLt, on the CPU: what a stream is given is done at once, or, while a
// graph is captured, remembered for it. Memory is filled with 0xFF (NaN in every format) when it is allocated. What it
// does not show: dependencies between streams that are missing, and times.
#pragma once

#include <functional>

#include "tests/simulator/threads.h"

namespace fp8lab::simulator {

void enqueue(std::function<void()> work);
inline void launch(Index grid, Index block, std::function<void()> kernel) {
    enqueue([=] { run_grid(grid, block, kernel); });
}

}  // namespace fp8lab::simulator
