// The device memory of a DecodeModel (decode.h), and its launch.
#pragma once

#include <span>
#include <vector>

#include "core/backend/token_engine.h"
#include "kernels/device/device.h"
#include "kernels/infer/decode.h"

namespace fp8lab::cuda {

struct DecodeShape {
    int layers = 1, batch = 1, d = 0, heads = 0, kv_heads = 0, ffn = 0;
    int capacity = 0;    // positions of the cache
    int vocabulary = 0;  // rows of the head; 0: there is none
};

// What the launch is told of them.
DecodeWeights decode_weights(const ServedFormats& formats);
DecodeInputs decode_inputs(const ServedFormats& formats);
DecodeCache decode_cache(const ServedFormats& formats);

class DecodeMemory {
  public:
    // Weights and cache are 0, gains and scales 1, the angles of RoPE are there, no position is in the cache. Throws as
    // plan_decode(), and Error{backend} where the memory of the GPU is too small.
    DecodeMemory(const DecodeShape& shape, const ServedFormats& formats);

    // One token of each sequence: what stands in `stream` through all layers, at position `length`.
    void enqueue(cudaStream_t stream) const;

    const DecodeModel& model() const { return model_; }
    Memory& weights() { return weights_; }
    // Of a matrix of a layer, or of the head in layer `layers`: where its bytes and the scale_inv of its rows begin.
    std::uint8_t* matrix_at(DecodeMatrixName name, int layer) const;
    float* scales_at(DecodeMatrixName name, int layer) const;
    Buffer<float>& scales() { return scales_; }
    Buffer<float>& gains() { return gains_; }        // norm1, norm2 of each layer, norm
    Buffer<float>& k_scales() { return k_scales_; }  // (layers, kv_heads), scale_inv
    Buffer<float>& v_scales() { return v_scales_; }
    Memory& keys() { return k_; }  // (layers, batch, kv_heads, capacity, head_size)
    Memory& values() { return v_; }
    Buffer<float>& stream() { return stream_; }  // (batch, d)
    const Buffer<float>& logits() const { return logits_; }
    Buffer<std::int32_t>& length() { return length_; }  // one
    double bytes() const { return bytes_; }

  private:
    void make_weights(const DecodeShape& shape);
    void make_cache(const DecodeShape& shape);
    void make_rows(const DecodeShape& shape);
    Memory zeros(std::size_t bytes);
    template <class T>
    Buffer<T> buffer(std::size_t count, T value = {});

    ServedFormats formats_;
    DecodeModel model_;
    DecodePlan plan_;
    double bytes_ = 0;
    Memory weights_, k_, v_;
    Buffer<float> scales_, gains_, k_scales_, v_scales_, cos_, sin_, stream_, qkv_, attended_, hidden_,
        logits_, partials_;
    Buffer<std::uint32_t> counts_;
    Buffer<std::int32_t> length_;
};

}  // namespace fp8lab::cuda
