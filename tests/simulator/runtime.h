// A stand-in for the CUDA runtime and for cuBLASLt, on the CPU: what a stream is given is done at once, or, while a
// graph is captured, remembered for it. Memory is filled with 0xFF (NaN in every format) when it is allocated. What it
// does not show: dependencies between streams that are missing, and times.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <functional>
#include <string_view>

#include "tests/simulator/threads.h"

namespace fp8lab::simulator {

// memset: of cudaMemsetAsync(), which graphs know of.
void enqueue(std::function<void()> work, const cudaMemsetParams* memset = nullptr);
bool captures();  // a graph is being captured

template <class To, class From>
To handle(From* object) {
    return reinterpret_cast<To>(object);
}
// FP8LAB_SIMULATOR_ORDER: forwards (also if it is not set), backwards or shuffled.
inline Order order_of_threads() {
    const char* const name = std::getenv("FP8LAB_SIMULATOR_ORDER");
    const std::string_view order = name ? name : "forwards";
    return order == "backwards" ? Order::backwards : order == "shuffled" ? Order::shuffled : Order::forwards;
}
inline void launch(Index grid, Index block, std::function<void()> kernel) {
    enqueue([=] { run_grid(grid, block, kernel, order_of_threads()); });
}

}  // namespace fp8lab::simulator
