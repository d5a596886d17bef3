// A weight matrix that ranks train together.
#pragma once

#include <cstddef>

#include "core/nn/memory_plan.h"
#include "kernels/arm/slot.h"
#include "kernels/optimizer/parameters.h"

namespace fp8lab::cuda {

// What a rank owns of it (Shard::zero1).
struct WeightBlock {
    std::size_t rows = 0;  // of every rank's block; `shape` has those that this one really has
    Shape shape;
    Memory gradient;  // the sum over the ranks
    Memory sent;      // what the others get; empty: the master weights
    Memory gathered;  // what this rank casts or multiplies; empty: the operand itself
    Sent as = Sent::bf16;
    std::size_t elements() const { return rows * static_cast<std::size_t>(shape.padded_cols); }
};

struct SharedWeight {
    const Slot* w = nullptr;
    const Parameters* master = nullptr;     // of the block, where there is one
    const Parameters* gradient = nullptr;   // of this rank's part of the batch
    const Memory* sent_gradient = nullptr;  // with memory where the gradient is not in the format of the sum
    const WeightBlock* block = nullptr;     // null: each rank has the whole matrix
};

// What a rank has of the sum of the gradients: of its block, or of the matrix, in the format of the sum.
inline const void* summed_gradient(const SharedWeight& weight) {
    if (weight.block) return weight.block->gradient.get();
    return weight.sent_gradient->bytes() > 0 ? weight.sent_gradient->get() : weight.gradient->get();
}

}  // namespace fp8lab::cuda
