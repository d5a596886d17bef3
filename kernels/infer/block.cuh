// What a block of threads of the launch knows, in shared memory: functions that are not inlined read it there, so that the
// compiler holds in registers what one phase needs, not what all of them do. And a barrier of all blocks of threads that leaves
// time between its two halves.
#pragma once

#include "kernels/device/tensor_cores.cuh"
#include "kernels/infer/decode.h"

namespace fp8lab::cuda {

struct BlockState {
    DecodeModel m;
    DecodePlan plan;
    float slots[kDecodeWarps * kMostDecodeTokens];
    float factors[kMostDecodeTokens];  // what products of a token are multiplied by
    float angles[kMostDecodeHead];     // cos, sin of this position
    std::uint32_t amaxes[kMostDecodeTokens];
    bool last;
};
static_assert(sizeof(BlockState) <= kDecodeStateBytes);
__device__ inline BlockState& block() { return *reinterpret_cast<BlockState*>(dynamic_shared_memory()); }
__device__ inline const DecodeModel& model() { return block().m; }
// Behind it: the scales of this block's rows, its rows of the residual stream, then x and sums, or what attention needs.
__device__ inline float* shared_scales() {
    return reinterpret_cast<float*>(dynamic_shared_memory() + kDecodeStateBytes);
}
__device__ inline float* shared_stream() {
    return reinterpret_cast<float*>(dynamic_shared_memory() + kDecodeStateBytes + block().plan.scales_bytes);
}
__device__ inline std::byte* shared_rest() {
    return dynamic_shared_memory() + kDecodeStateBytes + block().plan.scales_bytes + block().plan.own_bytes;
}

__device__ inline int warp_number() { return static_cast<int>(threadIdx.x) / 32; }
__device__ inline int lane_number() { return static_cast<int>(threadIdx.x) % 32; }
__device__ inline int thread_number() { return static_cast<int>(threadIdx.x); }
__device__ inline int block_number() { return static_cast<int>(blockIdx.x); }
__device__ inline int block_count() { return static_cast<int>(gridDim.x); }

// A step is a matrix of a layer.
__device__ inline int step_count() { return 4 * model().layers + (model().head ? 1 : 0); }
__device__ inline int name_of(int step) {
    return step < 4 * model().layers ? step % 4 : static_cast<int>(kHead);
}

// Tiles of a block of threads: block_number(), block_number() + block_count() ...
__device__ inline int tiles_here(const DecodeMatrix& m) {
    return block_number() < m.tiles ? (m.tiles - block_number() - 1) / block_count() + 1 : 0;
}
__device__ inline int row_of(int tile, int row) {
    return (block_number() + tile * block_count()) * kDecodeTileRows + row;
}
__device__ inline int slice_blocks(const DecodeMatrix& m, int slice) {
    return min(m.slice, m.blocks - slice * m.slice);
}

// Adds behind all that the block wrote before its last __syncthreads(), and what the returned ones wrote is seen after it.
__device__ inline std::uint32_t add_released(std::uint32_t* to, std::uint32_t v) {
#ifdef __CUDA_ARCH__
    std::uint32_t old;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(to), "r"(v) : "memory");
    return old;
#else
    return atomicAdd(to, v);
#endif
}

// After all blocks have arrived the n-th time and wait_for_blocks(n), all see what each wrote before. DecodeModel::barrier: two
// words, zeros, which leave() sets back.
__device__ inline void arrive() {
    __syncthreads();
    if (threadIdx.x != 0) return;
#ifdef __CUDA_ARCH__
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(model().barrier) : "memory");
#else
    atomicAdd(model().barrier, 1u);
#endif
}
__device__ inline void wait_for_blocks(int times) {
    if (threadIdx.x == 0) {
        const std::uint32_t goal = static_cast<std::uint32_t>(times) * gridDim.x;
        const std::uint32_t* const count = model().barrier;
        std::uint32_t seen = 0;
        do {
#ifdef __CUDA_ARCH__
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(count) : "memory");
#else
            seen = *count;
#endif
        } while (seen < goal);
    }
    __syncthreads();
}
__device__ inline void leave() {
    __syncthreads();
    std::uint32_t* const count = model().barrier;
    if (threadIdx.x == 0 && atomicAdd(count + 1, 1u) + 1 == gridDim.x) {
        count[0] = 0;
        count[1] = 0;
    }
}

}  // namespace fp8lab::cuda
