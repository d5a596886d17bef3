// Causal attention in BF16, as a training step has it: forward, and backward from what the forward pass left.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string_view>

#include "core/nn/memory_plan.h"
#include "kernels/layers/launch.h"

namespace fp8lab::cuda {

// Matrices of (sequences * context) rows: q, k, v side by side in one, and their gradients in another of the same shape;
// the output and its gradient.
struct AttentionPlaces {
    Element element = Element::bf16;
    int qkv_stride = 0, out_stride = 0;  // elements between rows
};

// The memory that AttentionBytes counts: the forward pass gives `kept` to the backward pass, each pass has its
// `scratch`.
struct AttentionMemory {
    void *kept = nullptr, *scratch = nullptr;
};

// It has no memory of its own: the blocks of a model share one.
class Attention {
  public:
    virtual ~Attention() = default;
    virtual AttentionBytes bytes() const = 0;
    virtual void forward(const void* qkv, void* out, const AttentionMemory& memory, cudaStream_t stream) = 0;
    virtual void backward(const void* qkv, const void* out, const void* dout, void* dqkv,
                          const AttentionMemory& memory, cudaStream_t stream) = 0;
    // Bytes that the last kernel of backward() moves, where a step is faster with updates beside it; else 0.
    virtual std::size_t bytes_of_last() const { return 0; }
    virtual std::string_view name() const = 0;
};

// Attention with the probabilities in memory, for every shape.
std::unique_ptr<Attention> make_materialised_attention(const AttentionSizes& sizes,
                                                       const AttentionPlaces& places);
// cuDNN's where it is found and takes the shape, else the one above.
std::unique_ptr<Attention> make_attention(const AttentionSizes& sizes, const AttentionPlaces& places);

}  // namespace fp8lab::cuda
