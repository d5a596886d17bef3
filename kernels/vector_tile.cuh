// The casts of a tensor with many scales. A block of threads takes 128 x 128 elements, two tiles below each
// other, so that it finds the amax of 128 elements along either dimension among its own. Values are cast with
// the scale of their row and, transposed, with that of their column.
//
// Blocks: one launch, values stay in registers between their amax and their cast. Rows: one launch for the
// amaxes, one for the cast, and what the source reads counts twice. Bytes per element: what the source reads
// + 1 + 1 (+ 1/16 of scales in blocks).
#pragma once

#include "kernels/scale_rule.cuh"
#include "kernels/tile_parts.cuh"

namespace fp8lab::cuda {

constexpr int kTiles = kBlock / kTileRows, kWarps = kThreads / 32;
static_assert(kTileCols == kBlock && kThreads == 2 * kBlock);

struct BlockPlace {
    int r0, c0;  // of the block
    int tx, ty;
    __device__ int row(int tile, int i) const { return r0 + tile * kTileRows + ty * kThreadRows + i; }
    __device__ int column() const { return c0 + tx * kThreadCols; }
};
__device__ inline BlockPlace block_place() {
    return {static_cast<int>(blockIdx.y) * kBlock, static_cast<int>(blockIdx.x) * kBlock,
            static_cast<int>(threadIdx.x) % kThreadsAcross, static_cast<int>(threadIdx.x) / kThreadsAcross};
}

struct VectorMemory {
    std::uint32_t turned[kTileCols * kThreadsDown];
    float warps[kWarps][kBlock];  // amaxes of columns, by warp
    // Of the block's columns, then of its rows: amaxes, later scales.
    float vectors[2 * kBlock];
};

// The values of a thread's part of a tile, row by row, zeros in the padding: take(i, values).
template <class Source, class Take>
__device__ inline void for_rows(Source& source, const BlockPlace& at, int tile, Shape s, Take&& take) {
    const bool whole = at.r0 + kBlock <= s.rows && at.c0 + kBlock <= s.cols;
    const int c = at.column(), safe_c = c < s.padded_cols ? c : 0;
#pragma unroll
    for (int first = 0; first < kThreadRows; first += Source::kAhead) {
        typename Source::Raw raw[Source::kAhead];
#pragma unroll
        for (int i = 0; i < Source::kAhead; ++i)
            raw[i] = source.fetch(min(at.row(tile, first + i), s.rows - 1), safe_c, s);
#pragma unroll
        for (int i = 0; i < Source::kAhead; ++i) {
            const int r = at.row(tile, first + i);
            const bool real = whole || (c < s.padded_cols && r < s.rows);
            Eight v;
            source.values(raw[i], r, c, real, s, v);
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j)
                if (!whole && (!real || c + j >= s.cols)) v[j] = 0;
            take(first + i, v);
        }
    }
}

// Of 16 neighbouring threads, each gets the largest value of row tx % 4 over all of them.
__device__ inline float amax_of_row(const float (&rows)[kThreadRows], int tx) {
    static_assert(kThreadRows == 4 && kThreadsAcross == 16);
    const auto other = [](float x, int lane) { return __shfl_xor_sync(0xFFFFFFFFu, x, lane); };
    // Every thread hands two rows to its partner and takes over two, then one and one.
    const bool low = (tx & 2) == 0, even = (tx & 1) == 0;
    const float a = fmaxf(low ? rows[0] : rows[2], other(low ? rows[2] : rows[0], 2)),
                b = fmaxf(low ? rows[1] : rows[3], other(low ? rows[3] : rows[1], 2));
    float most = fmaxf(even ? a : b, other(even ? b : a, 1));
    most = fmaxf(most, other(most, 4));
    return fmaxf(most, other(most, 8));
}

// The amaxes of columns and rows, NaN ignored, in shared memory; the tensor's, NaN kept, in its state; the
// source's own sums where they belong. keep(tile, i, values): every value once. kAtOnce: tiles whose loads
// may be on their way together.
template <int kAtOnce, class Source, class Keep>
__device__ inline void gather(Source& source, const BlockPlace& at, Shape s, const TileTarget& target,
                              VectorMemory& shared, Keep&& keep) {
    const std::uint32_t seen = target.state->amax_bits;
    float amax = 0;
    Eight columns = {};
#pragma unroll kAtOnce
    for (int tile = 0; tile < kTiles; ++tile) {
        [[maybe_unused]] Eight sums = {};
        float rows[kThreadRows] = {};
        for_rows(source, at, tile, s, [&](int i, const Eight& v) {
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) {
                amax = larger(amax, v[j]);
                rows[i] = fmaxf(rows[i], fabsf(v[j]));
                columns[j] = fmaxf(columns[j], fabsf(v[j]));
                if constexpr (Source::kBiasSums) sums[j] += v[j];
            }
            keep(tile, i, v);
        });
        const float of_row = amax_of_row(rows, at.tx);
        if (at.tx < kThreadRows) shared.vectors[kBlock + at.row(tile, at.tx) - at.r0] = of_row;
        if constexpr (Source::kBiasSums || Source::kLoss) {
            if (at.r0 + tile * kTileRows < s.padded_rows) {
                store_source_sums(source, sums, blockIdx.y * kTiles + tile, s, target, shared.turned);
                __syncthreads();  // the next tile's sums take the same memory
            }
            if constexpr (Source::kLoss) source.loss = 0;
        }
    }
    max_amax(target.state, seen, amax);
#pragma unroll
    for (int j = 0; j < kThreadCols; ++j)  // two rows of threads a warp
        columns[j] = fmaxf(columns[j], __shfl_xor_sync(0xFFFFFFFFu, columns[j], kThreadsAcross));
    if (threadIdx.x % 32 < kThreadsAcross)
        store8(shared.warps[threadIdx.x / 32] + at.tx * kThreadCols, columns);
    __syncthreads();
    if (threadIdx.x >= kBlock) return;
    float largest = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) largest = fmaxf(largest, shared.warps[w][threadIdx.x]);
    shared.vectors[threadIdx.x] = largest;
}

// ---- the thread's own vector of the block: column threadIdx.x, or a row
struct OwnVector {
    bool is_column;
    int index, padded;  // in the matrix
};
__device__ inline OwnVector own_vector(const BlockPlace& at, Shape s) {
    const int i = static_cast<int>(threadIdx.x) % kBlock;
    return threadIdx.x < kBlock ? OwnVector{true, at.c0 + i, s.padded_cols}
                                : OwnVector{false, at.r0 + i, s.padded_rows};
}

// Scaling::rows, first launch.
__device__ inline void keep_amaxes(const BlockPlace& at, Shape s, const ScaleVectors& to,
                                   const VectorMemory& shared) {
    const OwnVector own = own_vector(at, s);
    if (own.index < own.padded)
        atomicMax(to.amaxes + (own.is_column ? s.padded_rows : 0) + own.index,
                  __float_as_uint(shared.vectors[threadIdx.x]));
}

// Scaling::rows, second launch.
__device__ inline void load_scales(const BlockPlace& at, Shape s, const ScaleVectors& from,
                                   VectorMemory& shared) {
    const OwnVector own = own_vector(at, s);
    const float* const scales = from.scales + (own.is_column ? s.padded_rows : 0);
    shared.vectors[threadIdx.x] = own.index < own.padded ? scales[own.index] : 1.0F;
}

template <class ScaleOf>
__device__ inline void scale_blocks(const BlockPlace& at, Shape s, const ScaleVectors& to,
                                    ScaleOf&& scale_for, VectorMemory& shared) {
    const OwnVector own = own_vector(at, s);
    const float scale = scale_for(shared.vectors[threadIdx.x]);
    shared.vectors[threadIdx.x] = scale;
    float* const inverses = own.is_column ? to.columns : to.rows;
    const unsigned block = own.is_column ? blockIdx.y : blockIdx.x;
    if (inverses && own.index < own.padded)
        inverses[static_cast<std::size_t>(block) * own.padded + own.index] = 1 / scale;
}

template <class ScaleOf>
__device__ inline void scale_square(Shape s, const ScaleVectors& to, ScaleOf&& scale_for,
                                    VectorMemory& shared) {
    const std::uint32_t most = __reduce_max_sync(0xFFFFFFFFu, __float_as_uint(shared.vectors[threadIdx.x]));
    if (threadIdx.x % 32 == 0) shared.warps[0][threadIdx.x / 32] = __uint_as_float(most);
    __syncthreads();
    float largest = 0;
    for (int w = 0; w < kWarps; ++w) largest = fmaxf(largest, shared.warps[0][w]);
    const float scale = scale_for(largest);
    shared.vectors[threadIdx.x] = scale;
    if (threadIdx.x != 0) return;
    const auto up4 = [](int n) { return static_cast<unsigned>((n + 3) / 4 * 4); };
    if (to.rows) to.rows[blockIdx.y * up4(blocks_of(s.padded_cols)) + blockIdx.x] = 1 / scale;
    if (to.columns) to.columns[blockIdx.x * up4(blocks_of(s.padded_rows)) + blockIdx.y] = 1 / scale;
}

// Both layouts of one tile. rows(take): its values as in for_rows().
template <class Out, bool kStats, class Rows>
__device__ inline void cast_tile(Rows&& rows, const BlockPlace& at, int tile, Shape s,
                                 const TileTarget& target, VectorMemory& shared) {
    const int c = at.column();
    const bool inside = c < s.padded_cols && at.row(tile, 0) < s.padded_rows;
    Gathered g;
    std::uint32_t low[kThreadRows] = {}, high[kThreadRows] = {}, words[kThreadCols];
    Eight columns, inverses = {};
    load8(shared.vectors + at.tx * kThreadCols, columns);
    const bool measures_columns = kStats && !target.rows;
    if (measures_columns)
        for (int j = 0; j < kThreadCols; ++j) inverses[j] = 1 / columns[j];
    rows([&](int i, const Eight& v) {
        if (target.rows) {
            const float scale = shared.vectors[kBlock + at.row(tile, i) - at.r0], inverse = 1 / scale;
            cast_row<Out, kStats>(v, scale, inverse, inside ? target.rows : nullptr,
                                  static_cast<std::size_t>(at.row(tile, i)) * s.padded_cols + c, g);
        }
        if (!target.columns) return;
        const uint2 row = measures_columns ? cast_row<Out, kStats>(v, columns, inverses, nullptr, 0, g)
                                           : cast_row<Out, false>(v, columns, inverses, nullptr, 0, g);
        low[i] = row.x, high[i] = row.y;
    });
    if (target.columns) {
        turn4(low, words);
        turn4(high, words + 4);
        __syncthreads();  // whoever had the memory before
        store_columns(static_cast<std::uint8_t*>(target.columns), words, s, at.r0 + tile * kTileRows, at.c0,
                      shared.turned);
    }
    if constexpr (kStats) store_stats(g, blockIdx.y * kTiles + tile, target);
}

__device__ inline void leave_scale_1(const TileTarget& target) {
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0)
        target.state->scale_used = target.state->scale_inv = 1;
}

template <class Source>
__device__ inline void prepare(Source& source, const BlockPlace& at, Shape s) {
    source.prepare(at.column() < s.padded_cols ? at.column() : 0);
}

template <class Source>
__global__ void __launch_bounds__(kThreads)
    row_amaxes(Source source, Shape s, TileTarget target, ScaleVectors vectors) {
    __shared__ __align__(16) VectorMemory shared;
    wait_for_the_kernel_before();
    const BlockPlace at = block_place();
    prepare(source, at, s);
    gather<1>(source, at, s, target, shared, [](int, int, const Eight&) {});
    __syncthreads();
    keep_amaxes(at, s, vectors, shared);
}

template <class Source, class Out, bool kStats>
__global__ void __launch_bounds__(kThreads)
    row_cast(Source source, Shape s, TileTarget target, ScaleVectors vectors) {
    __shared__ __align__(16) VectorMemory shared;
    wait_for_the_kernel_before();
    const BlockPlace at = block_place();
    prepare(source, at, s);
    load_scales(at, s, vectors, shared);
    __syncthreads();
#pragma unroll 1
    for (int tile = 0; tile < kTiles; ++tile)
        if (at.r0 + tile * kTileRows < s.padded_rows)
            cast_tile<Out, kStats>([&](auto&& take) { for_rows(source, at, tile, s, take); }, at, tile, s,
                                   target, shared);
    leave_scale_1(target);
}

template <class Source, class Out, bool kStats>
__global__ void __launch_bounds__(kThreads, 2)
    block_cast(Source source, Shape s, TileTarget target, bool squares, ScaleVectors vectors) {
    __shared__ __align__(16) VectorMemory shared;
    wait_for_the_kernel_before();
    const BlockPlace at = block_place();
    prepare(source, at, s);
    Eight held[kTiles][kThreadRows];
    gather<kTiles>(source, at, s, target, shared, [&](int tile, int i, const Eight& v) {
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) held[tile][i][j] = v[j];
    });
    __syncthreads();
    const float max_finite = target.state->max_finite;
    const ScaleControls how = *vectors.controls;
    const auto scale_for = [&](float amax) {
        return scale_of(amax, max_finite, how.margin, 1.0F, how.pow2 != 0);
    };
    if (squares)
        scale_square(s, vectors, scale_for, shared);
    else
        scale_blocks(at, s, vectors, scale_for, shared);
    __syncthreads();
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile)
        if (at.r0 + tile * kTileRows < s.padded_rows)
            cast_tile<Out, kStats>(
                [&](auto&& take) {
#pragma unroll
                    for (int i = 0; i < kThreadRows; ++i) take(i, held[tile][i]);
                },
                at, tile, s, target, shared);
    leave_scale_1(target);
}

template <class Source, class Out, bool kStats>
void launch_vectors(const Source& source, Shape s, const TileTarget& target, const CastTarget& to, Pass pass,
                    cudaStream_t stream) {
    const dim3 grid(static_cast<unsigned>(blocks_of(s.padded_cols)),
                    static_cast<unsigned>(blocks_of(s.padded_rows)));
    constexpr auto kName = "cast kernel";
    if (to.scaling != Scaling::rows)
        launch(kName, block_cast<Source, Out, kStats>, grid, kThreads, stream, source, s, target,
               to.scaling == Scaling::squares, to.vectors);
    else if (pass == Pass::amax_only)
        launch(kName, row_amaxes<Source>, grid, kThreads, stream, source, s, target, to.vectors);
    else
        launch(kName, row_cast<Source, Out, kStats>, grid, kThreads, stream, source, s, target, to.vectors);
}

template <class Source>
void launch_vectors(const Source& source, Shape s, const TileTarget& target, const CastTarget& to, Pass pass,
                    cudaStream_t stream) {
    using E4m3 = ToFp8<__NV_E4M3>;
    using E5m2 = ToFp8<__NV_E5M2>;
    if (to.element == Element::e4m3)
        (target.stats ? launch_vectors<Source, E4m3, true>
                      : launch_vectors<Source, E4m3, false>)(source, s, target, to, pass, stream);
    else
        (target.stats ? launch_vectors<Source, E5m2, true>
                      : launch_vectors<Source, E5m2, false>)(source, s, target, to, pass, stream);
}

// Whether a source is cast to tensors with many scales. Its values may be computed twice.
template <class Source>
constexpr bool kManyScales = true;

}  // namespace fp8lab::cuda
