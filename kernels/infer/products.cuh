// A matrix of weights times x of up to 8 tokens.
#pragma once

#include "kernels/infer/stream.cuh"

namespace fp8lab::cuda {

__device__ inline uint4 read16(const void* p) { return *static_cast<const uint4*>(p); }

// x in shared memory: (tokens, stride) of BF16, or of FP16 for weights in E4M3; stride_bytes keeps 8 lanes that read side by side
// in different banks.
struct SharedX {
    std::byte* at;
    int stride_bytes;
    float* factors;  // (tokens): what products are multiplied by
};
template <DecodeWeights kW>
constexpr int kXPadding = kW == DecodeWeights::bf16 ? 64 : 16;  // beyond a multiple of 128 bytes

// One block of 16 rows and 128 bytes along K. x: of this lane's token, at the block. Two sums, so that products need not wait for
// each other.
template <DecodeWeights kW>
__device__ inline void multiply_block(const uint4 (&w)[4], const std::byte* x, bool real,
                                      float (&sums)[2][4]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const uint4 low = w[2 * half], high = w[2 * half + 1];  // row, row + 8
        const std::uint32_t a[4] = {low.x, low.y, low.z, low.w}, b[4] = {high.x, high.y, high.z, high.w};
        if constexpr (kW == DecodeWeights::bf16) {
            const uint4 v = real ? read16(x + half * 64) : uint4{0, 0, 0, 0};
            multiply_add<Multiplied::bf16>(sums[0], a[0], b[0], a[1], b[1], v.x, v.y);
            multiply_add<Multiplied::bf16>(sums[1], a[2], b[2], a[3], b[3], v.z, v.w);
        } else {
#pragma unroll
            for (int p = 0; p < 2; ++p) {
                const uint4 v = real ? read16(x + half * 128 + p * 16) : uint4{0, 0, 0, 0};
                std::uint32_t a0, a1, a2, a3;
                widen(a[2 * p], a0, a2);
                widen(b[2 * p], a1, a3);
                multiply_add<Multiplied::f16>(sums[0], a0, a1, a2, a3, v.x, v.y);
                widen(a[2 * p + 1], a0, a2);
                widen(b[2 * p + 1], a1, a3);
                multiply_add<Multiplied::f16>(sums[1], a0, a1, a2, a3, v.z, v.w);
            }
        }
    }
}

// Sums of a block of threads: by its tiles, parts of K, rows, tokens.
struct Sums {
    float* at;
    int batch;
    __device__ float* of(const DecodeMatrix& m, int tile, int k_warp, int row) const {
        return at + ((tile * m.k_warps + k_warp) * kDecodeTileRows + row) * batch;
    }
    __device__ float total(const DecodeMatrix& m, int tile, int row, int token) const {
        float sum = 0;
        for (int k = 0; k < m.k_warps; ++k) sum += of(m, tile, k, row)[token];
        return sum;
    }
};

// A slice. Afterwards all sums of the block of threads are there.
template <DecodeWeights kW>
__device__ inline void multiply_slice(const DecodeMatrix& m, int slice, WeightStream& stream,
                                      const SharedX& x, const Sums& sums) {
    const Share share = share_of(m, slice);
    const int lane = lane_number(), token = lane / 4, quarter = lane % 4, warp = warp_number();
    const int k_warp = warp % m.k_warps, groups = kDecodeWarps / m.k_warps;
    constexpr int kXBytes = block_k(kW) * 2, kQuarter = kW == DecodeWeights::bf16 ? 16 : 32;
    const bool real = token < sums.batch;
    const std::byte* const mine =
        x.at + token * x.stride_bytes + k_warp * m.part * kXBytes + quarter * kQuarter;
    for (int i = 0, tile = warp / m.k_warps; i < share.tiles; ++i, tile += groups) {
        float c[2][4] = {};
        for (int k = 0; k < share.count; ++k) {
            const std::byte* const block = stream.wait() + lane * 16;
            uint4 w[4];
#pragma unroll
            for (int j = 0; j < 4; ++j) w[j] = read16(block + j * 512);
            stream.done();
            multiply_block<kW>(w, mine + k * kXBytes, real, c);
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int row = token + j / 2 * 8, of = 2 * quarter + j % 2;
            if (of >= sums.batch) continue;
            float& to = sums.of(m, tile, k_warp, row)[of];
            to = (slice == 0 ? 0.0F : to) + (c[0][j] + c[1][j]);
        }
    }
    __syncthreads();
}

}  // namespace fp8lab::cuda
