// How long a pass (pass.h) of a model of random numbers takes on this GPU, and its parts alone.
#pragma once

#include <string>
#include <vector>

#include "core/backend/backend.h"
#include "kernels/prefill/pass.h"

namespace fp8lab::cuda {

struct PassCase {  // the defaults: a layer of Llama 3 8B
    int d = 4096, heads = 32, kv_heads = 8, ffn = 14336;
    int context = 2048;  // positions after the pass: those in the cache before it are context - tokens
    int layers = 4, batch = 1, tokens = 1;
    PassWeights weights = PassWeights::bf16;
    PassCache cache = PassCache::bf16;
    Element stream = Element::bf16;
    bool own_attention = false;
    std::size_t copied = std::size_t{1} << 30;  // bytes of the copy that is the ceiling
};

struct PassTimes {
    // Of `layers` layers, without a head. Names: "copy" (the ceiling), "pass"; "GEMMs", "attention", "memory-bound
    // kernels" and of those "norm + cast", "append", "cast of attention", "SwiGLU + cast", each alone in a graph of its own.
    // `bytes` is what a kernel reads and writes once; of "pass" what must be read: weights and cache. Where a matrix is small
    // enough for the L2 cache, a kernel can be faster than the copy, and what it gives is as in the pass. GEMMs have `flop`.
    std::vector<Timed> lines;
    std::string attention;    // "own", "cuDNN"
    double memory_bytes = 0;  // of the device
    const Timed& line(const std::string& name) const;
};

// The medians of `repeats` graph replays or more, all lines in turns. Random weights, K and V. Throws as ServedPass does; where the
// memory of the GPU is too small, Error{backend} before anything is timed.
PassTimes time_pass(const PassCase& c, int repeats);

}  // namespace fp8lab::cuda
