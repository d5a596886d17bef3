// Autotune: finds the fastest of several algorithms for a product under the conditions of a training step: in a
// graph, without pauses between launches. Timed one launch at a time with pauses, the GPU has a higher clock than in
// a training step and other algorithms are the fastest: with those, the five products of a step took 1.5 %
// (1024-4096, BF16) and 2.5 % (8192-32768, FP8) longer on one H200 (CUDA 13.0, 2026-11-21); at other sizes
// 0.5 % more or less.
#pragma once

#include <functional>

#include "kernels/device/device.h"

namespace fp8lab::cuda {

// The index of the fastest of `count` >= 1. run(i) enqueues the product once on `stream`; every one of them
// has run before. Takes a few seconds for large products, less for small ones; a quarter of that, and a choice
// that may be a percent slower, where FP8LAB_TUNING is "quick" (scripts/record.sh, for hundreds of products).
std::size_t fastest_of(std::size_t count, double flop, const std::function<void(std::size_t)>& run,
                       cudaStream_t stream);

bool quick_tuning();

}  // namespace fp8lab::cuda
