// Which of several ways to compute a product is the fastest where it will run: in a graph, back to back, on a
// card at work. Timed one launch at a time, between pauses, the card clocks higher than a training step lets
// it, and other algorithms win: on one H200 (CUDA 13.0, 2026-11-21) the five products of a step, in a row,
// then took 1.5 % (1024-4096, BF16) and 2.5 % (8192-32768, FP8) longer; at other sizes 0.5 % either way.
#pragma once

#include <functional>

#include "kernels/device.h"

namespace fp8lab::cuda {

// The index of the fastest of `count` >= 1. run(i) enqueues the product once on `stream`; every one of them
// has run before. Takes a few seconds for products that fill the card, a fraction for small ones.
std::size_t fastest_of(std::size_t count, double flop, const std::function<void(std::size_t)>& run,
                       cudaStream_t stream);

}  // namespace fp8lab::cuda
