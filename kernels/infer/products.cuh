// A matrix of weights times x of up to 8 tokens.
#pragma once

#include "kernels/infer/block.cuh"

namespace fp8lab::cuda {

__device__ inline uint4 read16(const void* p) { return *static_cast<const uint4*>(p); }

// ---- the weights
// What a warp multiplies of a slice of a matrix: `count` blocks of each of its tiles.
struct Share {
    const std::uint8_t* first;
    std::size_t step;  // bytes between its tiles
    int tiles, count;
    __device__ Share(int of_step, int slice) {
        const DecodeMatrix& m = model().matrix[name_of(of_step)];
        const int warp = warp_number(), groups = kDecodeWarps / m.k_warps,
                  tile = block_number() + warp / m.k_warps * block_count(),
                  k = slice * m.slice + warp % m.k_warps * m.part;
        count = max(0, min(k + m.part, slice * m.slice + slice_blocks(m, slice)) - k);
        tiles = tile < m.tiles && count > 0 ? (m.tiles - tile - 1) / (block_count() * groups) + 1 : 0;
        first = model().weights + static_cast<std::size_t>(of_step / 4) * model().layer_bytes + m.at +
                (static_cast<std::size_t>(tile) * static_cast<std::size_t>(m.blocks) +
                 static_cast<std::size_t>(k)) *
                    kDecodeBlockBytes;
        step = static_cast<std::size_t>(block_count() * groups) * static_cast<std::size_t>(m.blocks) *
               kDecodeBlockBytes;
    }
    __device__ int blocks() const { return tiles * count; }
};

// Walks the blocks of a share.
class Blocks {
  public:
    __device__ explicit Blocks(const Share& s)
        : at_(s.first),
          left_(s.count),
          count_(s.count),
          jump_(s.step - static_cast<std::size_t>(s.count) * kDecodeBlockBytes) {}
    __device__ const std::uint8_t* next() {
        const std::uint8_t* const at = at_;
        at_ += kDecodeBlockBytes;
        if (--left_ == 0) {
            left_ = count_;
            at_ += jump_;
        }
        return at;
    }

  private:
    const std::uint8_t* at_;
    int left_;
    const int count_;
    const std::size_t jump_;
};

// A block of 16 rows and 128 bytes along K as the lanes of a warp hold it: of row lane / 4, of row lane / 4 + 8, twice.
struct HeldBlock {
    uint4 words[4] = {};
    __device__ void read(const std::uint8_t* from) {
#pragma unroll
        for (int i = 0; i < 4; ++i) words[i] = read_once(from + i * 512 + lane_number() * 16);
    }
};
// A warp's weights of a slice, in registers as far ahead as they reach: reading begins here, before what they are multiplied with
// is there. (All of the array has a value from the start: else the compiler keeps its registers from step to step.)
constexpr int kHeldBlocks = 10;
struct Weights {
    const Share share;
    Blocks next;
    HeldBlock held[kHeldBlocks];
    __device__ Weights(int step, int slice) : share(step, slice), next(share) {
#pragma unroll
        for (int i = 0; i < kHeldBlocks - 1; ++i)
            if (i < share.blocks()) held[i].read(next.next());
    }
};

// ---- x in shared memory: (tokens, DecodeMatrix::x_stride bytes) of BF16, or of FP16 for weights in E4M3. The stride keeps 8
// lanes that read side by side in different banks.
__device__ inline std::byte* x_of(const DecodeMatrix& m, int token) {
    return shared_rest() + token * m.x_stride;
}

// x: of this lane's token, at the block. Two sums, so that products need not wait for each other.
template <DecodeWeights kW>
__device__ inline void multiply_block(const HeldBlock& w, const std::byte* x, bool real,
                                      float (&sums)[2][4]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const uint4 low = w.words[2 * half], high = w.words[2 * half + 1];  // row, row + 8
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

// ---- sums of this block's rows, behind x: by its tiles, parts of K, tokens, rows. The stride of a token keeps what the lanes of
// a warp write in different banks.
__device__ inline float* sums_of(const DecodeMatrix& m, int tile, int part) {
    const int batch = model().batch;
    return reinterpret_cast<float*>(x_of(m, batch)) + (tile * m.parts + part) * batch * kSumStride;
}
// A product: the sum of all parts, scaled.
__device__ inline float product(const DecodeMatrix& m, int tile, int row, int token) {
    const float* const first = sums_of(m, tile, 0) + token * kSumStride + row;
    const int stride = model().batch * kSumStride;
    float sum = 0;
#pragma unroll
    for (int k = 0; k < kDecodeWarps; ++k)
        if (k < m.parts) sum += first[k * stride];
    return sum * (shared_scales()[tile * kDecodeTileRows + row] * block().factors[token]);
}

template <DecodeWeights kW>
__device__ inline void multiply_slice(const DecodeMatrix& m, int slice, Weights& weights) {
    const int lane = lane_number(), token = lane / 4, quarter = lane % 4, warp = warp_number();
    const int part = warp % m.k_warps, groups = kDecodeWarps / m.k_warps, n = weights.share.blocks(),
              batch = model().batch, tile_stride = groups * m.parts * batch * kSumStride;
    constexpr int kXBytes = block_k(kW) * 2, kQuarter = kW == DecodeWeights::bf16 ? 16 : 32;
    const bool real = token < batch;
    const std::byte* const x = x_of(m, token) + part * m.part * kXBytes + quarter * kQuarter;
    float* to = sums_of(m, warp / m.k_warps, part) + 2 * quarter * kSumStride + token;
    float c[2][4] = {};
    int k = 0;
    for (int first = 0; first < n; first += kHeldBlocks) {
#pragma unroll
        for (int j = 0; j < kHeldBlocks; ++j) {
            const int i = first + j;
            if (i >= n) break;
            if (i + kHeldBlocks - 1 < n)
                weights.held[(j + kHeldBlocks - 1) % kHeldBlocks].read(weights.next.next());
            multiply_block<kW>(weights.held[j], x + k * kXBytes, real, c);
            if (++k < weights.share.count) continue;
#pragma unroll
            for (int e = 0; e < 4; ++e) {  // of row token + e / 2 * 8 and token 2 quarter + e % 2
                float* const sum = to + e % 2 * kSumStride + e / 2 * 8;
                if (2 * quarter + e % 2 < batch) *sum = (slice == 0 ? 0.0F : *sum) + (c[0][e] + c[1][e]);
                c[0][e] = c[1][e] = 0;
            }
            k = 0;
            to += tile_stride;
        }
    }
}

}  // namespace fp8lab::cuda
