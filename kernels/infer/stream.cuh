// The weights as a stream: each warp's blocks in the order in which it multiplies them, across matrices and layers, copied to
// shared memory ahead of their use; and a barrier of all blocks of threads that leaves time between its two halves.
#pragma once

#include "kernels/infer/decode.h"
#include "kernels/infer/instructions.cuh"

namespace fp8lab::cuda {

__device__ inline int warp_number() { return static_cast<int>(threadIdx.x) / 32; }
__device__ inline int lane_number() { return static_cast<int>(threadIdx.x) % 32; }

// What a warp multiplies of a slice of a matrix: `count` blocks from block k on of tiles `first`, first + step ...
struct Share {
    int first, step, tiles, k, count;
};
__device__ inline Share share_of(const DecodeMatrix& m, int slice) {
    const int grid = static_cast<int>(gridDim.x), warp = warp_number(), groups = kDecodeWarps / m.k_warps;
    Share s;
    s.step = grid * groups;
    s.first = static_cast<int>(blockIdx.x) + warp / m.k_warps * grid;
    s.tiles = s.first < m.tiles ? (m.tiles - s.first - 1) / s.step + 1 : 0;
    s.k = slice * m.slice + warp % m.k_warps * m.part;
    s.count = max(0, min(s.k + m.part, min(m.blocks, (slice + 1) * m.slice)) - s.k);
    return s;
}
// Tiles of a block of threads: blockIdx.x, blockIdx.x + gridDim.x ...
__device__ inline int tiles_here(const DecodeMatrix& m) {
    const int first = static_cast<int>(blockIdx.x), grid = static_cast<int>(gridDim.x);
    return first < m.tiles ? (m.tiles - first - 1) / grid + 1 : 0;
}

class WeightStream {
  public:
    // ring: depth blocks of this warp; matrices: a copy in shared memory, which is near.
    __device__ WeightStream(const DecodeModel& model, const DecodeMatrix* matrices, std::byte* ring,
                            std::uint64_t* there, int depth)
        : model_(model), matrices_(matrices), ring_(ring), there_(there), depth_(depth) {
        make_signals(there, depth);
        for (int i = 0; i < depth; ++i) ask();
    }
    // The next block, when it is there.
    __device__ const std::byte* wait() {
        wait_for_copy(there_ + read_, parity_);
        return ring_ + read_ * kDecodeBlockBytes;
    }
    // All lanes have read it: its place is filled again.
    __device__ void done() {
        __syncwarp();
        ask();
        if (++read_ == depth_) {
            read_ = 0;
            parity_ ^= 1;
        }
    }

  private:
    __device__ void ask() {
        if (left_ == 0 && !next()) return;
        copy_ahead<kDecodeBlockBytes>(ring_ + asked_ * kDecodeBlockBytes, from_, there_ + asked_);
        from_ += kDecodeBlockBytes;
        --left_;
        if (++asked_ == depth_) asked_ = 0;
    }
    __device__ bool next() {
        if (--tiles_left_ > 0) {
            tile_ += tile_step_;
            from_ = tile_;
            left_ = count_;
            return true;
        }
        return next_slice();
    }
    __device__ bool next_slice() {
        const int phases = 4 * model_.layers + (model_.head ? 1 : 0);
        while (phase_ < phases) {
            if (phase_ < 0 || ++slice_ * current().slice >= current().blocks) {
                slice_ = 0;
                if (++phase_ == phases) break;
            }
            const DecodeMatrix& m = current();
            const Share s = share_of(m, slice_);
            if (s.tiles == 0 || s.count == 0) continue;
            const auto blocks = static_cast<std::size_t>(m.blocks);
            tile_ = model_.weights + static_cast<std::size_t>(phase_ / 4) * model_.layer_bytes + m.at +
                    (static_cast<std::size_t>(s.first) * blocks + static_cast<std::size_t>(s.k)) *
                        kDecodeBlockBytes;
            tile_step_ = static_cast<std::size_t>(s.step) * blocks * kDecodeBlockBytes;
            tiles_left_ = s.tiles;
            from_ = tile_;
            left_ = count_ = s.count;
            return true;
        }
        tiles_left_ = 0;
        return false;
    }
    __device__ const DecodeMatrix& current() const {
        return matrices_[phase_ / 4 < model_.layers ? phase_ % 4 : static_cast<int>(kHead)];
    }

    const DecodeModel& model_;
    const DecodeMatrix* const matrices_;
    std::byte* const ring_;
    std::uint64_t* const there_;
    const int depth_;
    const std::uint8_t *tile_ = nullptr, *from_ = nullptr;
    std::size_t tile_step_ = 0;
    int phase_ = -1, slice_ = 0, tiles_left_ = 0, left_ = 0, count_ = 0, asked_ = 0, read_ = 0;
    std::uint32_t parity_ = 0;
};

// After arrive() of all blocks and wait(), all see what each wrote before. count: two words, zeros, which leave() sets back.
class AllBlocks {
  public:
    __device__ explicit AllBlocks(std::uint32_t* count) : count_(count) {}
    __device__ void arrive() {
        __syncthreads();
        goal_ += gridDim.x;
        if (threadIdx.x != 0) return;
        __threadfence();
#ifdef __CUDA_ARCH__
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(count_) : "memory");
#else
        atomicAdd(count_, 1u);
#endif
    }
    __device__ void wait() {
        if (threadIdx.x == 0) {
            std::uint32_t seen = 0;
            do {
#ifdef __CUDA_ARCH__
                asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(count_) : "memory");
#else
                seen = *count_;
#endif
            } while (seen < goal_);
        }
        __syncthreads();
    }
    __device__ void leave() {
        __syncthreads();
        if (threadIdx.x == 0 && atomicAdd(count_ + 1, 1u) + 1 == gridDim.x) {
            count_[0] = 0;
            count_[1] = 0;
        }
    }

  private:
    std::uint32_t* const count_;
    std::uint32_t goal_ = 0;
};

}  // namespace fp8lab::cuda
