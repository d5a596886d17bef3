// Kernels that only a rank of several needs.
#pragma once

#include "kernels/device/launch.h"

namespace fp8lab::cuda {

// The amaxes that ranks share, of scale states by their index: `count` of `all`, from the one at `first` on.
struct SharedAmaxes {
    ScaleState* states = nullptr;
    int count = 0, first = 0, all = 0;
    int index[kMostRankValues] = {};
};
// values: all amaxes, behind them 1 where the arm has stopped, else 0: what an all-reduce of all + 1 values makes the largest of all
// ranks; and behind that the amaxes once more: rank_values() of core/nn/memory/gpu_sizes.h.
void pack_amaxes(const SharedAmaxes& amaxes, const ArmState* arm, float* values, cudaStream_t stream);
// Back, and an arm that has stopped on one rank stops on this one.
void unpack_amaxes(const SharedAmaxes& amaxes, const float* values, ArmState* arm, cudaStream_t stream);
// The records of the step get the amaxes of this rank back. of: tensors of the arm.
void record_own_amaxes(const SharedAmaxes& amaxes, const float* values, TensorResult* records, int of,
                       const ArmState* arm, cudaStream_t stream);

// Of a rank that has cast no part of a tensor: what a cast with the newest scale leaves.
void give_scale_inv(ScaleState* state, cudaStream_t stream);

// db of each bias from its partial sums; nothing else is read or written.
void sum_biases(const BiasUpdates& updates, cudaStream_t stream);

// The transpose of codes of 8 bits: `out` (padded_cols, padded_rows).
void transpose_codes(const void* in, Shape shape, void* out, cudaStream_t stream);

}  // namespace fp8lab::cuda
