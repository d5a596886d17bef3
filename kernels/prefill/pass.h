// A pass of `tokens` new positions of each of `batch` sequences through a decoder-only transformer
// (core/nn/models/transformer/model.h) with the GEMMs of cuBLASLt: prefill, and decode where decode.h has too few sequences. It is
// a row of launches without a wait and without an allocation, so that a graph (kernels/device/graph.h) can hold it.
//
// Of a layer, over rows (sequence, token), padded to a multiple of 16 with zeros:
//   norm + cast | GEMM qkv | RoPE of K, append of K and V | attention over the cache, which rotates Q | cast | GEMM out, added
//   to the stream | norm + cast | GEMM gate_up | SwiGLU + cast | GEMM down, added to the stream
// and at the end norm + cast of the last token of each sequence | GEMM head.
//
// Rounding: the inputs of GEMMs are BF16, or E4M3 with the scale 448 / amax of the row or of all real rows. Sums are FP32; qkv,
// gate and up are rounded to the element of the stream, BF16 or FP32, and a product joins the stream rounded once. What attention
// and SwiGLU give is rounded to BF16 before it is cast, K and V to the cache. With a stream in BF16 also Q, when it is rotated, and
// probabilities are, or to FP16 where the cache is E4M3; with one in FP32 they have 16 bits of mantissa or more.
// Logits are FP32. Sums of attention have an order that depends on the shape and on *length alone; those of GEMMs on the algorithm
// that was the fastest (kernels/gemm). So the bytes of a sequence do not depend on what the other sequences of a batch hold, except
// through the amax of e4m3_tensor; with another batch or number of tokens they may differ by roundings.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "kernels/device/launch.h"

namespace fp8lab::cuda {

class Lt;

enum class PassWeights : int { bf16, e4m3_row, e4m3_tensor };  // and of the inputs
enum class PassCache : int { bf16, e4m3 };

constexpr int kMostServedBatch = 256, kMostServedContext = 32768, kMostServedHead = 128,
              kMostServedWidth = 32768;

struct PassShape {
    int layers = 1, d = 0, heads = 0, kv_heads = 0, head_size = 0, ffn = 0;
    int vocabulary = 0;                       // 0: no head
    int capacity = 0;                         // positions of the cache
    int batch = 1, tokens = 1;                // of a pass
    PassWeights weights = PassWeights::bf16;  // E4M3 of tensor cores: Hopper's, of one scale per row
    PassCache cache = PassCache::bf16;
    Element stream = Element::bf16;  // or f32: of the residual stream, qkv, gate and up
    bool from_empty = false;         // *length is 0: attention may then be cuDNN's, with a stream in BF16
    bool own_attention = false;      // never cuDNN's
    int rows() const { return batch * tokens; }
    int qkv_rows() const { return (heads + 2 * kv_heads) * head_size; }
};

// A matrix (rows, cols), row-major, 16-byte aligned. scales: what weights in E4M3 are multiplied with, one per row or one;
// 16-byte aligned. Rows of qkv: q, k, v; of gate_up: all gates, then all ups. Those of the head are padded to a multiple of 16.
struct PassMatrix {
    const void* weights = nullptr;
    const float* scales = nullptr;
};
struct PassLayer {
    PassMatrix qkv, out, gate_up, down;
    const float *norm_attention = nullptr, *norm_mlp = nullptr;  // (d)
    const float *k_scales = nullptr, *v_scales = nullptr;        // (kv_heads): scale_inv of an E4M3 cache
};
struct PassModel {  // device memory of the caller
    std::vector<PassLayer> layers;
    PassMatrix head;
    const float* norm = nullptr;                 // (d)
    const float *cos = nullptr, *sin = nullptr;  // (capacity, head_size / 2)
    void *k = nullptr, *v = nullptr;             // (layers, batch, kv_heads, capacity, head_size)
    const std::int32_t* length = nullptr;        // positions in the cache before the pass, of every sequence
};

// Parts of a pass, for timing.
enum PassPart : unsigned {
    kServedNorms = 1,
    kServedGemms = 2,
    kServedAppends = 4,
    kServedAttention = 8,
    kServedCasts = 16,  // of what attention gives
    kServedGates = 32,
    kServedHead = 64,
    kServedMemory = kServedNorms | kServedAppends | kServedCasts | kServedGates,
    kServedAll = 127
};

class ServedPass {
  public:
    // Chooses the algorithms of the GEMMs (seconds, where kernels/gemm has not kept them) and allocates what lies between the
    // launches. Throws usage_error with one sentence about a shape that it does not take; Error{backend} where the memory of the
    // GPU is too small or cuBLASLt refuses a product. `lt` must live longer.
    ServedPass(const PassShape& shape, const Lt& lt, cudaStream_t stream);
    ~ServedPass();
    ServedPass(ServedPass&&) noexcept;
    ServedPass& operator=(ServedPass&&) noexcept;

    const PassShape& shape() const;
    // (rows, d): the embeddings before a pass, then what the layers made of them. Rows behind the last one are padding.
    void* stream() const;
    // (batch, vocabulary padded to a multiple of 16), of the last token of each sequence; null without a head.
    const float* logits() const;
    std::string_view attention() const;  // "own", "cuDNN"
    std::size_t bytes() const;           // that it has allocated
    // Puts a pass on the stream. *length + tokens is at most capacity; *length stays as it is.
    void enqueue(const PassModel& model, cudaStream_t stream, unsigned parts = kServedAll);

  private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace fp8lab::cuda
