// Sums over a block of threads, in a fixed order.
#pragma once

#include "kernels/device/launch.h"

namespace fp8lab::cuda {

// The sum of a warp in a fixed order, valid in its first thread.
template <class T>
__device__ T warp_sum(T value) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xFFFFFFFFu, value, offset);
    return value;
}

// What all threads of the block have gathered, into *out. All six sums go through shared memory together:
// six times one sum would make a short step longer.
template <int kBlockThreads>
__device__ inline void store_cast_sums(const CastSums& mine, CastSums* out) {
    constexpr int kSums = 6, kWarps = kBlockThreads / 32;
    static_assert(sizeof(CastSums) == kSums * sizeof(double));
    __shared__ double shared[kSums][kWarps];
    const double sums[kSums] = {warp_sum(mine.signal),           warp_sum(mine.noise),
                                warp_sum(mine.mass.l1),          warp_sum(mine.mass.lost_l1),
                                warp_sum(mine.mass.lost_energy), warp_sum(mine.fourth)};
    __syncthreads();  // the tile before has been read
    if (threadIdx.x % 32 == 0) {
#pragma unroll
        for (int k = 0; k < kSums; ++k) shared[k][threadIdx.x / 32] = sums[k];
    }
    __syncthreads();
    if (threadIdx.x >= kSums) return;
    double total = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) total += shared[threadIdx.x][w];
    reinterpret_cast<double*>(out)[threadIdx.x] = total;
}

}  // namespace fp8lab::cuda
