// One timing of `bench infer`: the layers of a decoder-only transformer on random data, without embedding and head.
#pragma once

#include <string>
#include <vector>

#include "core/backend/token_engine.h"

namespace fp8lab {

struct InferCase {
    int d = 4096, heads = 32, kv_heads = 8, ffn = 14336;  // of Llama-3-8B
    int context = 2048;  // positions that a sequence has at the end: the cache holds `tokens` less before
    int layers = 4;
    int batch = 1, tokens = 1;  // sequences, and tokens of each that are read at once
    ServedFormats formats = {};
};
// Throws usage_error("--shape", ...): sizes that make no transformer.
void check_infer_case(const InferCase& of);

// What has to be read at the least: the weights, and the keys and values of `context` positions. Scales are not counted.
double weight_bytes(const InferCase& of);
double cache_bytes(const InferCase& of);
// What one token of each sequence multiplies and adds: a weight twice, and twice 2 operations for each value of Q and position.
double token_flop(const InferCase& of);

// A part of a pass, alone in a graph of its own: its median, what it reads and writes once, and what it multiplies and adds.
struct InferPart {
    std::string name;  // "GEMMs", "attention", "memory-bound kernels", and of those "norm + cast" ...
    double ms = 0, bytes = 0, flop = 0;
};
// Medians and quartiles in ms of the replays of a CUDA graph, and of copies of 1 GiB: behind them, of a pass of many launches in turns with them.
struct InferTime {
    double median_ms = 0, q1_ms = 0, q3_ms = 0;
    int repeats = 0;
    double copy_ms = 0, copy_bytes = 0;  // of the faster copy; bytes read and written
    double memory_bytes = 0;             // of the device
    // Of a pass that is many launches (more sequences than one launch takes, or more tokens); empty: it is one launch.
    std::vector<InferPart> parts = {};
    std::string attention = {};  // "own", "cuDNN"
};

}  // namespace fp8lab
