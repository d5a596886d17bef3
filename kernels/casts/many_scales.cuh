// The casts of a tensor with many scales. A block of threads takes 128 x 128 elements, two tiles below each
// other, so that it finds the amax of 128 elements along either dimension among its own. Values are cast with
// the scale of their row and, transposed, with that of their column.
//
// Blocks: one launch, values stay in registers between their amax and their cast. Rows: one launch for the
// amaxes, one for the cast, and what the source reads counts twice. Bytes per element: what the source reads
// + 1 + 1 (+ 1/16 of scales in blocks).
#pragma once

#include "core/scaling/scale_rule.h"
#include "kernels/casts/many_scales_block.cuh"

namespace fp8lab::cuda {

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

// ScaleMode::row, first launch.
__device__ inline void keep_amax(const BlockPlace& at, Shape s, const ScaleVectors& to, float amax) {
    const OwnVector own = own_vector(at, s);
    if (own.index < own.padded)
        atomicMax(to.amaxes + (own.is_column ? s.padded_rows : 0) + own.index, __float_as_uint(amax));
}

// ScaleMode::row, when the amaxes are complete: every block computes the scales of its rows and columns, and the
// first one of a row or column stores their inverse.
__device__ inline void scale_from_amax(const BlockPlace& at, Shape s, float max_finite,
                                       const ScaleVectors& vectors, VectorMemory& shared) {
    const OwnVector own = own_vector(at, s);
    float scale = 1;
    if (own.index < own.padded) {
        const ScaleControls how = *vectors.controls;
        const float amax =
            __uint_as_float(__ldcg(vectors.amaxes + (own.is_column ? s.padded_rows : 0) + own.index));
        scale = fp8lab::scale_from_amax(amax, max_finite, how.margin, 1.0F, how.pow2 != 0);
        if (own.is_column ? at.r0 == 0 : at.c0 == 0)
            (own.is_column ? vectors.columns : vectors.rows)[own.index] = 1 / scale;
    }
    shared.vectors[threadIdx.x] = scale;
}

// The largest of all amaxes of the block.
__device__ inline float largest_of_block(float amax, VectorMemory& shared) {
    const std::uint32_t most = __reduce_max_sync(0xFFFFFFFFu, __float_as_uint(amax));
    if (threadIdx.x % 32 == 0) shared.most[threadIdx.x / 32] = __uint_as_float(most);
    __syncthreads();
    float largest = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) largest = fmaxf(largest, shared.most[w]);
    return largest;
}

// The scale_inv of the thread's own vector, or of the whole block, to where products read it.
__device__ inline void store_scale_inv(const BlockPlace& at, Shape s, const ScaleVectors& to, bool squares,
                                       float scale_inv) {
    const int x = at.c0 / kBlock, y = at.r0 / kBlock;
    if (squares) {
        const auto up4 = [](int n) { return (n + 3) / 4 * 4; };
        if (threadIdx.x != 0) return;
        if (to.rows) to.rows[y * up4(blocks_of(s.padded_cols)) + x] = scale_inv;
        if (to.columns) to.columns[x * up4(blocks_of(s.padded_rows)) + y] = scale_inv;
        return;
    }
    const OwnVector own = own_vector(at, s);
    float* const all = own.is_column ? to.columns : to.rows;
    if (all && own.index < own.padded)
        all[static_cast<std::size_t>(own.is_column ? y : x) * own.padded + own.index] = scale_inv;
}

// Word `word` of column j of the eight columns of a thread in column tx of threads, permuted so that neither
// side meets a bank twice.
__device__ inline int transposed_block_word(int tx, int j, int word) {
    return (tx * kThreadCols + j) * kWordsDown + (word ^ (tx * 2));
}

// 8 threads per column, 16 bytes each: whole lines.
__device__ inline void store_block_columns(std::uint8_t* out, const BlockPlace& at, Shape s,
                                           const std::uint32_t* transposed) {
    constexpr unsigned kParts = kBlock / 16, kColumns = kThreads / kParts, kPasses = kBlock / kColumns;
    const unsigned part = threadIdx.x % kParts, column = threadIdx.x / kParts;
    const int r = at.r0 + static_cast<int>(part) * 16, c = at.c0 + static_cast<int>(column);
    if (r >= s.padded_rows) return;
    out += static_cast<std::size_t>(c) * s.padded_rows + r;
    const std::size_t stride = static_cast<std::size_t>(kColumns) * s.padded_rows;
    const unsigned tx = column / kThreadCols;  // in the first pass; later ones are a multiple of 4 further on
#pragma unroll
    for (unsigned pass = 0; pass < kPasses; ++pass, out += stride) {
        if (c + static_cast<int>(pass * kColumns) >= s.padded_cols) return;
        const unsigned from = column * kWordsDown + ((part ^ (tx / 2)) * 4);
        uint4 v = *reinterpret_cast<const uint4*>(transposed + pass * kColumns * kWordsDown +
                                                  (from ^ (pass * kColumns / kThreadCols / 2 * 4)));
        if (tx & 1) v = make_uint4(v.z, v.w, v.x, v.y);
        *reinterpret_cast<uint4*>(out) = v;
    }
}

// Both layouts of the block. values(take): its values as in for_values().
template <class Source, class Out, bool kStats, class Values>
__device__ inline void cast_block(Values&& values, const BlockPlace& at, Shape s, const TileTarget& target,
                                  VectorMemory& shared) {
    const int c = at.column();
    Eight columns;
    load8(shared.vectors + at.tx * kThreadCols, columns);
    const bool measures_columns = kStats && !target.rows;
    std::uint8_t* const rows =
        static_cast<std::uint8_t*>(target.rows) + static_cast<std::size_t>(at.row(0, 0)) * s.padded_cols + c;
    Gathered g;
    uint2 across[kThreadRows];
    std::uint32_t low[kThreadRows], high[kThreadRows];
    values([&](int tile, int i, const Held<Source>& held) {
        Eight v;
        held.widen(v);
        if (!measures_columns) {
            const float scale = shared.vectors[kBlock + at.row(tile, i) - at.r0];
            across[i] = cast_row<Out, kStats>(v, scale, nullptr, 0, g);
        }
        const uint2 words = cast_row<Out, false>(v, columns, nullptr, 0, g);
        // A statement of its own: as a choice between two casts, one that measures, nvcc 13.0 measures other
        // values than it casts.
        if (measures_columns) measure<Out>(v, {words.x, words.y}, columns, g);
        low[i] = words.x, high[i] = words.y;
        if (i < kThreadRows - 1) return;
        if (target.rows && c < s.padded_cols && at.row(tile, 0) < s.padded_rows) {
#pragma unroll
            for (int k = 0; k < kThreadRows; ++k)
                *reinterpret_cast<uint2*>(rows + static_cast<std::size_t>(tile * kTileRows + k) *
                                                     s.padded_cols) = across[k];
        }
        std::uint32_t transposed[kThreadCols];
        transpose4(low, transposed);
        transpose4(high, transposed + 4);
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j)
            shared.transposed[transposed_block_word(at.tx, j, tile * kThreadsDown + at.ty)] = transposed[j];
        if constexpr (kStats) {
            if (at.r0 + tile * kTileRows < s.padded_rows)
                store_stats(g, {blockIdx.x, static_cast<unsigned>(at.r0) / kTileRows + tile, gridDim.x},
                            tiles_across(s), target);
            g = {};
        }
    });
    if (!target.columns) return;
    __syncthreads();
    store_block_columns(static_cast<std::uint8_t*>(target.columns), at, s, shared.transposed);
}

__device__ inline void leave_scale_1(const TileTarget& target) {
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0)
        target.state->scale_used = target.state->scale_inv = 1;
}

// Blocks that a multiprocessor should have room for: enough loads on their way.
template <class Source>
constexpr int kResident = sizeof(typename Source::Raw) <= 16 ? 3 : 2;

template <class Source>
__global__ void __launch_bounds__(kThreads, kResident<Source>)
    row_amaxes(Source source, Shape s, TileTarget target, ScaleVectors vectors) {
    __shared__ __align__(16) VectorMemory shared;
    wait_for_the_kernel_before();
    const BlockPlace at = block_place(source, s, blockIdx.y);
    with_values(source, at, s, [&](auto&& values) {
        prefetch_later_block(source, s);
        const auto again = [&](auto&& take) {
            Source copy = source;
            for_values(copy, at, s, take);
        };
        keep_amax(at, s, vectors,
                  gather(
                      source, values, at, s, target, shared, [](int, int, const Held<Source>&) {}, again));
    });
}

template <class Source, class Out, bool kStats>
__global__ void __launch_bounds__(kThreads, kResident<Source>)
    row_cast(Source source, Shape s, TileTarget target, ScaleVectors vectors) {
    __shared__ __align__(16) VectorMemory shared;
    wait_for_the_kernel_before();
    const BlockPlace at = block_place(
        source, s, gridDim.y - 1 - blockIdx.y);  // of what the amaxes were found in last, part is in L2
    with_values(source, at, s, [&](auto&& values) {
        scale_from_amax(at, s, target.state->max_finite, vectors, shared);
        __syncthreads();
        cast_block<Source, Out, kStats>(values, at, s, target, shared);
    });
    leave_scale_1(target);
}

// The scales of a block, from its values, and its codes. values, keep: as gather() has them. again(take): the values once more.
template <class Out, bool kStats, class Source, class Values, class Keep, class Again>
__device__ inline void cast_by_block(Source& source, Values&& values, const BlockPlace& at, Shape s,
                                     const TileTarget& target, bool squares, const ScaleVectors& vectors,
                                     VectorMemory& shared, Keep&& keep, Again&& again) {
    const float max_finite = target.state->max_finite;
    const ScaleControls how = *vectors.controls;
    const float amax = gather(source, values, at, s, target, shared, keep, again);
    const float largest = squares ? largest_of_block(amax, shared) : amax,
                scale = fp8lab::scale_from_amax(largest, max_finite, how.margin, 1.0F, how.pow2 != 0);
    shared.vectors[threadIdx.x] = scale;
    store_scale_inv(at, s, vectors, squares, 1 / scale);
    __syncthreads();
    cast_block<Source, Out, kStats>(again, at, s, target, shared);
}

// What a thread holds of the block, as `again` of gather() and values of cast_block().
template <class Source>
__device__ inline auto values_of(const Held<Source> (&held)[kBlockRows]) {
    return [&held](auto&& take) {
#pragma unroll
        for (int k = 0; k < kBlockRows; ++k) take(k / kThreadRows, k % kThreadRows, held[k]);
    };
}

template <class Source, class Out, bool kStats>
__global__ void __launch_bounds__(kThreads, 2)
    block_cast(Source source, Shape s, TileTarget target, bool squares, ScaleVectors vectors) {
    __shared__ __align__(16) VectorMemory shared;
    wait_for_the_kernel_before();
    const BlockPlace at = block_place(source, s, blockIdx.y);
    with_values(source, at, s, [&](auto&& values) {
        prefetch_later_block(source, s);
        Held<Source> held[kBlockRows];
        cast_by_block<Out, kStats>(
            source, values, at, s, target, squares, vectors, shared,
            [&](int tile, int i, const Held<Source>& row) { held[tile * kThreadRows + i] = row; },
            values_of<Source>(held));
    });
    leave_scale_1(target);
}

// Both launches in one, where all blocks fit on the GPU at once: the values stay in registers while the blocks
// exchange their amaxes. This saves one launch and one read, which count for small batches.
template <class Source, class Out>
__global__ void __launch_bounds__(kThreads, 2)
    row_cast_at_once(Source source, Shape s, TileTarget target, ScaleVectors vectors) {
    __shared__ __align__(16) VectorMemory shared;
    wait_for_the_kernel_before();
    const BlockPlace at = block_place(source, s, blockIdx.y);
    with_values(source, at, s, [&](auto&& values) {
        Held<Source> held[kBlockRows];
        const auto keep = [&](int tile, int i, const Held<Source>& row) {
            held[tile * kThreadRows + i] = row;
        };
        const auto again = values_of<Source>(held);
        keep_amax(at, s, vectors, gather(source, values, at, s, target, shared, keep, again));
        wait_for_all_blocks(vectors.arrived);
        scale_from_amax(at, s, target.state->max_finite, vectors, shared);
        __syncthreads();
        cast_block<Source, Out, false>(again, at, s, target, shared);
    });
    leave_scale_1(target);
}

// Only the sources of training steps are compiled for it: other sources, and casts that are measured, need no short
// launch.
template <class Source>
constexpr bool kAtOnce = kLight<Source>;

inline bool fits_at_once(dim3 grid) {
    return static_cast<int>(grid.x * grid.y) <= multiprocessors() * 3 / 2;  // of 2 blocks a multiprocessor
}

template <class Source, class Out, bool kStats>
void launch_vectors(const Source& source, Shape s, const TileTarget& target, const CastTarget& to, Pass pass,
                    cudaStream_t stream) {
    const dim3 grid(static_cast<unsigned>(blocks_of(s.padded_cols)),
                    static_cast<unsigned>(blocks_of(s.padded_rows)));
    constexpr auto kName = "cast kernel";
    if (to.scaling != ScaleMode::row)
        launch(kName, block_cast<Source, Out, kStats>, grid, kThreads, stream, source, s, target,
               to.scaling == ScaleMode::square128, to.vectors);
    else if (kAtOnce<Source> && !kStats && fits_at_once(grid)) {
        if constexpr (kAtOnce<Source> && !kStats)
            if (pass == Pass::cast)
                launch_together(kName, row_cast_at_once<Source, Out>, grid, kThreads, stream, source, s,
                                target, to.vectors);
    } else if (pass == Pass::amax_only)
        launch(kName, row_amaxes<Source>, grid, kThreads, stream, source, s, target, to.vectors);
    else
        launch(kName, row_cast<Source, Out, kStats>, grid, kThreads, stream, source, s, target, to.vectors);
}

template <class Source>
void launch_vectors(const Source& source, Shape s, const TileTarget& target, const CastTarget& to, Pass pass,
                    cudaStream_t stream) {
    const auto as = [&]<class Out>(Out) {
        (target.stats ? launch_vectors<Source, Out, true>
                      : launch_vectors<Source, Out, false>)(source, s, target, to, pass, stream);
    };
    if (to.element == Element::e4m3) return as(ToFp8<__NV_E4M3>());
    if constexpr (kMayBeE5m2<Source>)
        as(ToFp8<__NV_E5M2>());
    else
        throw Error(ErrorKind::backend, "cast", kForwardIsE4m3);
}

// Whether a source is cast to tensors with many scales. Its values may be computed twice.
template <class Source>
constexpr bool kManyScales = true;

}  // namespace fp8lab::cuda
