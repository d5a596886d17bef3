// The cast of a tensor with many scales: a block takes 128 x 128 elements, two tiles below each other, so
// that it finds the amax of 128 elements along either dimension among its own. Every value is computed once,
// kept in registers, and cast twice: with the scales of the payload and with those of its transpose.
//
// Bytes per element: what the source reads + 1 + 1 (+ 1/16 of scales); one scale a row needs two passes.
#pragma once

#include "kernels/scale_rule.cuh"
#include "kernels/tile_parts.cuh"

namespace fp8lab::cuda {

constexpr int kTiles = kBlock / kTileRows, kHeldRows = kTiles * kThreadRows, kWarps = kThreads / 32;
static_assert(kTileCols == kBlock);

// What a thread holds of a block: row i is row i % kThreadRows of its part of tile i / kThreadRows.
using Held = Eight[kHeldRows];

struct BlockPlace {
    int r0, c0;  // of the block
    int tx, ty;
    __device__ int row(int held) const {
        return r0 + held / kThreadRows * kTileRows + ty * kThreadRows + held % kThreadRows;
    }
    __device__ int column() const { return c0 + tx * kThreadCols; }
};
__device__ inline BlockPlace block_place() {
    return {static_cast<int>(blockIdx.y) * kBlock, static_cast<int>(blockIdx.x) * kBlock,
            static_cast<int>(threadIdx.x) % kThreadsAcross, static_cast<int>(threadIdx.x) / kThreadsAcross};
}

// Computes the values, zeros in the padding, and their amax; stores the source's own sums unless it runs a
// second time.
template <class Source>
__device__ inline float hold(Source& source, const BlockPlace& at, Shape s, const TileTarget& target,
                             bool with_sums, std::uint32_t* turned, Held& v) {
    const bool whole = at.r0 + kBlock <= s.rows && at.c0 + kBlock <= s.cols;
    const int c = at.column(), safe_c = c < s.padded_cols ? c : 0;
    source.prepare(safe_c);
    float amax = 0;
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
        [[maybe_unused]] Eight sums = {};
#pragma unroll
        for (int first = 0; first < kThreadRows; first += Source::kAhead) {
            typename Source::Raw raw[Source::kAhead];
#pragma unroll
            for (int i = 0; i < Source::kAhead; ++i)
                raw[i] = source.fetch(min(at.row(tile * kThreadRows + first + i), s.rows - 1), safe_c, s);
#pragma unroll
            for (int i = 0; i < Source::kAhead; ++i) {
                const int held = tile * kThreadRows + first + i, r = at.row(held);
                const bool real = whole || (c < s.padded_cols && r < s.rows);
                source.values(raw[i], r, c, real, s, v[held]);
#pragma unroll
                for (int j = 0; j < kThreadCols; ++j) {
                    if (!whole && (!real || c + j >= s.cols)) v[held][j] = 0;
                    amax = larger(amax, v[held][j]);
                    if constexpr (Source::kBiasSums) sums[j] += v[held][j];
                }
            }
        }
        if constexpr (Source::kBiasSums || Source::kLoss) {
            if (with_sums && at.r0 + tile * kTileRows < s.padded_rows) {
                store_source_sums(source, sums, blockIdx.y * kTiles + tile, s, target, turned);
                __syncthreads();  // the next tile's sums take the same memory
            }
            if constexpr (Source::kLoss) source.loss = 0;
        }
    }
    return amax;
}

// The largest |x| of row tx / 2 of those that the 16 threads of a tile's row hold; NaN ignored. At every step
// a thread hands half of its rows to its partner and takes over the other half.
__device__ inline float amax_of_a_row(const Held& v, int tx) {
    float most[kHeldRows];
#pragma unroll
    for (int i = 0; i < kHeldRows; ++i) {
        most[i] = 0;
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) most[i] = fmaxf(most[i], fabsf(v[i][j]));
    }
#pragma unroll
    for (int keep = kHeldRows / 2; keep >= 1; keep /= 2) {
        const bool upper = tx & (2 * keep);
#pragma unroll
        for (int i = 0; i < keep; ++i) {
            const float mine = upper ? most[i + keep] : most[i], other = upper ? most[i] : most[i + keep];
            most[i] = fmaxf(mine, __shfl_xor_sync(0xFFFFFFFFu, other, 2 * keep));
        }
    }
    return fmaxf(most[0], __shfl_xor_sync(0xFFFFFFFFu, most[0], 1));
}

// The largest |x| of column threadIdx.x of the block, in its first 128 threads; NaN ignored.
__device__ inline float amax_of_a_column(const Held& v, int tx, float (*warps)[kBlock]) {
    const int warp = static_cast<int>(threadIdx.x) / 32, c = static_cast<int>(threadIdx.x);
    Eight most;
#pragma unroll
    for (int j = 0; j < kThreadCols; ++j) {
        most[j] = 0;
#pragma unroll
        for (int i = 0; i < kHeldRows; ++i) most[j] = fmaxf(most[j], fabsf(v[i][j]));
        // Two rows of threads a warp.
        most[j] = fmaxf(most[j], __shfl_xor_sync(0xFFFFFFFFu, most[j], kThreadsAcross));
    }
    if (threadIdx.x % 32 < kThreadsAcross) store8(warps[warp] + tx * kThreadCols, most);
    __syncthreads();
    float largest = 0;
    if (c < kBlock)
        for (int w = 0; w < kWarps; ++w) largest = fmaxf(largest, warps[w][c]);
    return largest;
}

__device__ inline float amax_of_the_block(const Held& v, float* warps) {
    float most = 0;
#pragma unroll
    for (int i = 0; i < kHeldRows; ++i)
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) most = fmaxf(most, fabsf(v[i][j]));
    const std::uint32_t bits = __reduce_max_sync(0xFFFFFFFFu, __float_as_uint(most));
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = __uint_as_float(bits);
    __syncthreads();
    most = 0;
    for (int w = 0; w < kWarps; ++w) most = fmaxf(most, warps[w]);
    return most;
}

// The scales of a thread's rows and columns.
struct HeldScales {
    float rows[kHeldRows];
    Eight columns;
};

struct VectorMemory {
    std::uint32_t turned[kTileCols * kThreadsDown];
    float warps[kWarps][kBlock], columns[kBlock];
};

// Scaling::rows, first pass.
__device__ inline void gather_amaxes(const Held& v, const BlockPlace& at, Shape s, const ScaleVectors& to,
                                     VectorMemory& shared) {
    const float of_row = amax_of_a_row(v, at.tx), of_column = amax_of_a_column(v, at.tx, shared.warps);
    const int r = at.row(at.tx / 2), c = at.c0 + static_cast<int>(threadIdx.x);
    if (at.tx % 2 == 0 && r < s.rows) atomicMax(to.amaxes + r, __float_as_uint(of_row));
    if (threadIdx.x < kBlock && c < s.cols)
        atomicMax(to.amaxes + s.padded_rows + c, __float_as_uint(of_column));
}

// Scaling::rows, second pass.
__device__ inline void load_scales(const BlockPlace& at, Shape s, const ScaleVectors& from, HeldScales& out) {
    const int c = at.column();
#pragma unroll
    for (int i = 0; i < kHeldRows; ++i) out.rows[i] = from.scales[min(at.row(i), s.padded_rows - 1)];
    load8(from.scales + s.padded_rows + (c < s.padded_cols ? c : 0), out.columns);
}

template <class ScaleOf>
__device__ inline void scale_blocks(const Held& v, const BlockPlace& at, Shape s, const ScaleVectors& to,
                                    ScaleOf&& scale_for, VectorMemory& shared, HeldScales& out) {
    const float of_row = scale_for(amax_of_a_row(v, at.tx));
    const int r = at.row(at.tx / 2);
    if (to.rows && at.tx % 2 == 0 && r < s.padded_rows)
        to.rows[static_cast<std::size_t>(blockIdx.x) * s.padded_rows + r] = 1 / of_row;
    const int first_lane = static_cast<int>(threadIdx.x) % 32 - at.tx;
#pragma unroll
    for (int i = 0; i < kHeldRows; ++i) out.rows[i] = __shfl_sync(0xFFFFFFFFu, of_row, first_lane + 2 * i);
    const float largest = amax_of_a_column(v, at.tx, shared.warps);
    const int c = at.c0 + static_cast<int>(threadIdx.x);
    if (threadIdx.x < kBlock) {
        const float of_column = scale_for(largest);
        shared.columns[threadIdx.x] = of_column;
        if (to.columns && c < s.padded_cols)
            to.columns[static_cast<std::size_t>(blockIdx.y) * s.padded_cols + c] = 1 / of_column;
    }
    __syncthreads();
    load8(shared.columns + at.tx * kThreadCols, out.columns);
}

template <class ScaleOf>
__device__ inline void scale_square(const Held& v, Shape s, const ScaleVectors& to, ScaleOf&& scale_for,
                                    VectorMemory& shared, HeldScales& out) {
    const float scale = scale_for(amax_of_the_block(v, shared.columns));
    const auto up4 = [](int n) { return static_cast<unsigned>((n + 3) / 4 * 4); };
    if (threadIdx.x == 0) {
        const unsigned across = up4(blocks_of(s.padded_cols)), down = up4(blocks_of(s.padded_rows));
        if (to.rows) to.rows[blockIdx.y * across + blockIdx.x] = 1 / scale;
        if (to.columns) to.columns[blockIdx.x * down + blockIdx.y] = 1 / scale;
    }
#pragma unroll
    for (int i = 0; i < kHeldRows; ++i) out.rows[i] = scale;
#pragma unroll
    for (int j = 0; j < kThreadCols; ++j) out.columns[j] = scale;
}

// Both layouts of one tile of the block.
template <class Out, bool kStats>
__device__ inline void store_tile(const Held& v, const HeldScales& scales, const BlockPlace& at, int tile,
                                  Shape s, const TileTarget& target, std::uint32_t* turned) {
    const int c = at.column();
    const bool inside = c < s.padded_cols && at.row(tile * kThreadRows) < s.padded_rows;
    Gathered g;
    if (target.rows) {
#pragma unroll
        for (int i = 0; i < kThreadRows; ++i) {
            const int held = tile * kThreadRows + i;
            const float scale = scales.rows[held], inverse = kStats ? 1 / scale : 1;
            cast_row<Out, kStats>(v[held], scale, inverse, inside ? target.rows : nullptr,
                                  static_cast<std::size_t>(at.row(held)) * s.padded_cols + c, g);
        }
    }
    if (target.columns) {
        std::uint32_t low[kThreadRows], high[kThreadRows], words[kThreadCols];
        const auto cast = [&](auto measured) {
            Eight inverses = {};
            if constexpr (measured)
                for (int j = 0; j < kThreadCols; ++j) inverses[j] = 1 / scales.columns[j];
#pragma unroll
            for (int i = 0; i < kThreadRows; ++i) {
                const uint2 row = cast_row<Out, measured>(v[tile * kThreadRows + i], scales.columns, inverses,
                                                          nullptr, 0, g);
                low[i] = row.x, high[i] = row.y;
            }
        };
        if (kStats && !target.rows)
            cast(std::bool_constant<kStats>());
        else
            cast(std::false_type());
        turn4(low, words);
        turn4(high, words + 4);
        __syncthreads();  // whoever had the memory before
        store_columns(static_cast<std::uint8_t*>(target.columns), words, s, at.r0 + tile * kTileRows, at.c0,
                      turned);
    }
    if constexpr (kStats) store_stats(g, blockIdx.y * kTiles + tile, target);
}

template <class Source, class Out, bool kStats>
__global__ void __launch_bounds__(kThreads, 2)
    vector_cast(Source source, Shape s, TileTarget target, Scaling scaling, ScaleVectors vectors, Pass pass) {
    __shared__ __align__(16) VectorMemory shared;
    wait_for_the_kernel_before();
    const BlockPlace at = block_place();
    const std::uint32_t seen = target.state->amax_bits;
    Held v;
    const float amax = hold(source, at, s, target, pass == Pass::cast, shared.turned, v);
    if (pass == Pass::amax_only) return gather_amaxes(v, at, s, vectors, shared);
    max_amax(target.state, seen, amax);
    const float max_finite = target.state->max_finite;
    const int margin = vectors.controls->margin;
    const bool pow2 = vectors.controls->pow2 != 0;
    const auto scale_for = [&](float largest) { return scale_of(largest, max_finite, margin, 1.0F, pow2); };
    HeldScales scales;
    if (scaling == Scaling::rows)
        load_scales(at, s, vectors, scales);
    else if (scaling == Scaling::blocks)
        scale_blocks(v, at, s, vectors, scale_for, shared, scales);
    else
        scale_square(v, s, vectors, scale_for, shared, scales);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile)
        if (at.r0 + tile * kTileRows < s.padded_rows)
            store_tile<Out, kStats>(v, scales, at, tile, s, target, shared.turned);
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0)
        target.state->scale_used = target.state->scale_inv = 1;
}

template <class Source>
void launch_vectors(const Source& source, Shape s, const TileTarget& target, const CastTarget& to, Pass pass,
                    cudaStream_t stream) {
    const dim3 grid(static_cast<unsigned>(blocks_of(s.padded_cols)),
                    static_cast<unsigned>(blocks_of(s.padded_rows)));
    const auto run = [&](auto* kernel) {
        launch("cast kernel", kernel, grid, kThreads, stream, source, s, target, to.scaling, to.vectors,
               pass);
    };
    const bool stats = target.stats && pass == Pass::cast;
    if (to.element == Element::e4m3)
        run(stats ? vector_cast<Source, ToFp8<__NV_E4M3>, true>
                  : vector_cast<Source, ToFp8<__NV_E4M3>, false>);
    else
        run(stats ? vector_cast<Source, ToFp8<__NV_E5M2>, true>
                  : vector_cast<Source, ToFp8<__NV_E5M2>, false>);
}

}  // namespace fp8lab::cuda
