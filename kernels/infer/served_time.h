// How long a pass (served.h) of a model of random numbers takes on this GPU, and its parts alone.
#pragma once

#include <string>
#include <vector>

#include "core/backend/backend.h"
#include "kernels/infer/served.h"

namespace fp8lab::cuda {

struct ServedCase {  // the defaults: a layer of Llama 3 8B
    int d = 4096, heads = 32, kv_heads = 8, ffn = 14336;
    int context = 2048;  // positions after the pass: those in the cache before it are context - tokens
    int layers = 4, batch = 1, tokens = 1;
    ServedWeights weights = ServedWeights::bf16;
    ServedCache cache = ServedCache::bf16;
    Element stream = Element::bf16;
    bool own_attention = false;
    std::size_t copied = std::size_t{1} << 30;  // bytes of the copy that is the ceiling
};

struct ServedTimes {
    // Of `layers` layers, without a head. Names: "copy" (the ceiling), "pass"; "GEMMs", "attention", "memory-bound
    // kernels" and of those "norm + cast", "append", "cast of attention", "SwiGLU + cast", each alone in a graph of its own.
    // `bytes` is what a kernel reads and writes once; of "pass" what must be read: weights and cache. Where a matrix is small
    // enough for the L2 cache, a kernel can be faster than the copy, and what it gives is as in the pass. GEMMs have `flop`.
    std::vector<Timed> lines;
    std::string attention;  // "own", "cuDNN"
    const Timed& line(const std::string& name) const;
    double per_layer_us(const std::string& name, const ServedCase& of) const;
    double floor_ms() const;        // what must be read, at the copy's rate
    double over_parts() const;      // the pass over the sum of its GEMMs and attention
    double memory_of_copy() const;  // bytes per second of all memory-bound kernels over the copy's
};

// The medians of `repeats` graph replays or more, all lines in turns. Random weights, K and V. Throws as ServedPass does; where the
// memory of the GPU is too small, Error{backend} before anything is timed.
ServedTimes time_served(const ServedCase& c, int repeats);
// As a table, one line each.
std::string served_table(const ServedCase& c, const ServedTimes& times);

}  // namespace fp8lab::cuda
