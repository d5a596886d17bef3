// The kernels of a transformer's step as a table for their timings: the matrices that each moves, and its launch.
#pragma once

#include <string_view>
#include <vector>

#include "kernels/device/device.h"
#include "kernels/layers/launch.h"
#include "kernels/scaling/scale_buffers.h"

namespace fp8lab::cuda {

struct TransformerBench;

// A matrix of a case: `times` as wide as the shape; `moved`: how often its bytes are read or written.
struct MovedMatrix {
    Element element = Element::bf16;
    int times = 1, moved = 1;
};

// The cases of a shape (rows, cols): cols is d, and ffn or the vocabulary where those are the width.
struct TransformerCase {
    std::string_view name, kernel;
    std::vector<MovedMatrix> matrices;  // of a cast: the payload and its transpose last
    void (*launch)(const TransformerBench& bench, void* const* matrices, cudaStream_t stream);
    bool transposed = false;  // a cast to E4M3 both ways; else, of a cast, to BF16
    ScaleMode scaling = ScaleMode::tensor;
    int widest = 0;  // columns at most, where rows are whole in registers; 0: any
};
double bytes_per_element(const TransformerCase& kernel);  // of (rows, cols)
const std::vector<TransformerCase>& transformer_cases();

// Memory for so many repetitions of a case that they move `least_bytes`, so that none finds its data in a cache.
struct TransformerBench {
    TransformerBench(const TransformerCase& kernel, Shape shape, double least_bytes, cudaStream_t stream);
    void enqueue(cudaStream_t stream) const;
    double bytes() const;  // of a turn
    int sets() const { return static_cast<int>(memory.size() / kernel.matrices.size()); }
    CastTarget target(void* const* payload) const;
    TokenRing ring() const { return {tokens.get(), shape.rows, shape.cols, 1, nullptr, 1, nullptr}; }
    // Tokens of a vocabulary with as many tokens as there are rows: each occurs once.
    TokenRing embedding_ring() const {
        return {embedded.get(), shape.rows, shape.rows, 1, nullptr, 1, nullptr};
    }

    const TransformerCase& kernel;
    Shape shape;
    Rotary rotary;
    std::vector<Memory> memory;
    Buffer<float> gain, inverse_rms, cos, sin, gain_partials;
    Buffer<std::int32_t> tokens, embedded;
    Buffer<float2> row_stats;
    Buffer<double> row_sums;
    Buffer<std::uint8_t> correct;
    Buffer<ScaleState> state{1};
    Buffer<ScaleControls> controls{1};
    ScaleBuffers scales;
};

}  // namespace fp8lab::cuda
