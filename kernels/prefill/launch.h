// The launches between the GEMMs of a pass (pass.h). As in kernels/device/launch.h each function only enqueues; pointers are
// device memory.
#pragma once

#include "kernels/prefill/pass.h"

namespace fp8lab::cuda {

// What rows are cast to, the input of a GEMM. Rows from `rows` to padded_rows become zeros.
struct RowTarget {
    PassWeights as = PassWeights::bf16;
    int rows = 0, padded_rows = 0, cols = 0;
    void* out = nullptr;            // (padded_rows, cols)
    float* scale_inv = nullptr;     // (padded_rows), or one
    std::uint32_t* amax = nullptr;  // of e4m3_tensor: 0
};
// One launch, or, as e4m3_tensor, two: the first measures. cols: a multiple of 16 up to kMostServedWidth.
// Row r of the result is row r * step + step - 1 of x, divided by its root mean square, times the gain.
void norm_rows(const void* x, Element element, int step, const float* gain, const RowTarget& target,
               cudaStream_t stream);
void gate_rows(const void* gate_up, Element element, const RowTarget& target,
               cudaStream_t stream);                                          // (rows, 2 cols)
void cast_rows(const void* x, const RowTarget& target, cudaStream_t stream);  // (rows, cols) in BF16

// K, rotated, and V of qkv (rows, (heads + 2 kv_heads) head_size) into the cache of a layer.
struct ServedAttention {
    const void* qkv = nullptr;
    Element element = Element::bf16;  // of qkv; or f32
    void *k = nullptr, *v = nullptr;  // of the layer
    const float *k_scales = nullptr, *v_scales = nullptr, *cos = nullptr, *sin = nullptr;
    const std::int32_t* length = nullptr;
    void* out = nullptr;        // (rows, heads * head_size), BF16
    float* partials = nullptr;  // of splits
    int batch = 0, tokens = 0, heads = 0, kv_heads = 0, head_size = 0, capacity = 0;
    PassCache cache = PassCache::bf16;
    int splits = 1;  // ranges of positions, each of its own blocks of threads
};
// rotated: K of qkv is.
void append_heads(const ServedAttention& attention, bool rotated, cudaStream_t stream);

// Attention of the new positions to all before them and themselves, which append_heads() has put into the cache. With splits the
// results are partial, and merge_rows() adds them up.
void attend_served(const ServedAttention& attention, cudaStream_t stream);
void merge_rows(const ServedAttention& attention, const RowTarget& target, cudaStream_t stream);

// Few rows (tokens * heads / kv_heads up to this, or one token): the positions are shared among warps, and among `splits` blocks of threads.
constexpr int kFewServedRows = 16;
int served_splits(const PassShape& shape, int multiprocessors);
// A partial result: the sums of a head, the largest score in powers of 2, the total, and padding.
constexpr int partial_width(int head_size) { return head_size + 4; }
int served_attention_bytes(const PassShape& shape);  // of shared memory

}  // namespace fp8lab::cuda
