// The gradient of a bias: the sum of what the tiles of dy have added up (BiasUpdates).
#pragma once

#include <algorithm>

#include "kernels/optimizer/optimizer.cuh"

namespace fp8lab::cuda {

// A block takes kBiasesOfBlock biases, kBiasSums threads each.
constexpr int kBiasesOfBlock = 32;

inline dim3 bias_grid(const BiasUpdates& updates) {
    int widest = 1;
    for (int l = 0; l < updates.layers; ++l) widest = std::max(widest, updates.layer[l].count);
    return dim3(static_cast<unsigned>((widest + kBiasesOfBlock - 1) / kBiasesOfBlock),
                static_cast<unsigned>(updates.layers));
}

__device__ inline int bias_of_thread() {
    return static_cast<int>(blockIdx.x) * kBiasesOfBlock + static_cast<int>(threadIdx.x) % kBiasesOfBlock;
}

// By all threads of a block. True in the one that has the sum of bias_of_thread().
__device__ inline bool bias_gradient(const BiasUpdate& u, float& g) {
    __shared__ float sums[kBiasSums][kBiasesOfBlock];
    const int lane = static_cast<int>(threadIdx.x) % kBiasesOfBlock,
              part = static_cast<int>(threadIdx.x) / kBiasesOfBlock, i = bias_of_thread();
    float sum = 0;
#pragma unroll 16
    for (int tile = part; tile < (i < u.count ? u.tiles : 0); tile += kBiasSums)
        sum += u.partials[static_cast<std::size_t>(tile) * u.padded + i];
    sums[part][lane] = sum;
    __syncthreads();
    if (part > 0 || i >= u.count) return false;
    g = 0;
#pragma unroll
    for (int p = 0; p < kBiasSums; ++p) g += sums[p][lane];
    return true;
}

}  // namespace fp8lab::cuda
