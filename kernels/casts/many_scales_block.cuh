// What the casts of a tensor with many scales are made of: the values of a block of kBlock x kBlock elements,
// two tiles below each other, and their amaxes along both dimensions. A thread works on 4 rows x 8 columns of
// each tile.
#pragma once

#include "kernels/casts/held.cuh"
#include "kernels/casts/tile_pieces.cuh"

namespace fp8lab::cuda {

constexpr int kTiles = kBlock / kTileRows, kWarps = kThreads / 32;
static_assert(kTileCols == kBlock && kThreads == 2 * kBlock);

struct BlockPlace {
    int r0, c0;  // of the block
    int tx, ty;
    __device__ int row(int tile, int i) const { return r0 + tile * kTileRows + ty * kThreadRows + i; }
    __device__ int column() const { return c0 + tx * kThreadCols; }
};
// `y`: the block's among the rows of blocks.
template <class Source>
__device__ inline BlockPlace block_place(const Source& source, Shape s, unsigned y) {
    return {static_cast<int>(y) * kBlock, tile_column(source, s, blockIdx.x) * kBlock,
            static_cast<int>(threadIdx.x % kThreadsAcross), static_cast<int>(threadIdx.x / kThreadsAcross)};
}

constexpr int kWordsDown = kBlock / 4;  // of a column's codes
struct VectorMemory {
    // Codes by columns; before them, the source's sums over columns by rows of threads, (kTiles *
    // kThreadsDown, kBlock).
    std::uint32_t transposed[kBlock * kWordsDown];
    float warps[kWarps][kBlock];  // amaxes of columns, by warp
    // One entry per column of the block, then one per row: amaxes, later scales.
    float vectors[2 * kBlock];
    float most[kWarps];
    double losses[kTiles][kWarps];
};

constexpr int kBlockRows = kTiles * kThreadRows;  // of a thread

// Sources whose loads for a whole block fit in registers: all of a thread are on their way before the first
// value is unpacked, and blocks without padding have code of their own.
template <class Source>
constexpr bool kLight = sizeof(typename Source::Raw) <= 32;

// run(whether the block has no padding): a bool, or a constant of that value.
template <class Source, class Run>
__device__ inline void with_whole(const BlockPlace& at, Shape s, Run&& run) {
    const bool whole = at.r0 + kBlock <= s.rows && at.c0 + kBlock <= s.cols;
    if constexpr (!kLight<Source>)
        run(whole);
    else if (whole)
        run(std::true_type());
    else
        run(std::false_type());
}

// The thread's rows from `first` on.
template <class Whole, class Source, int kCount>
__device__ inline void fetch_rows(Whole whole, const Source& source, const BlockPlace& at, Shape s, int first,
                                  typename Source::Raw (&raw)[kCount]) {
    const int c = at.column(), safe_c = whole || c < s.padded_cols ? c : 0;
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
        const int r = at.row((first + k) / kThreadRows, (first + k) % kThreadRows);
        raw[k] = source.fetch(whole ? r : min(r, s.rows - 1), safe_c, s);
    }
}
template <class Whole, class Source, int kCount, class Take>
__device__ inline void use_rows(Whole whole, Source& source, const BlockPlace& at, Shape s, int first,
                                const typename Source::Raw (&raw)[kCount], Take&& take) {
    const int c = at.column();
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
        const int tile = (first + k) / kThreadRows, i = (first + k) % kThreadRows, r = at.row(tile, i);
        const bool real = whole || (c < s.padded_cols && r < s.rows);
        Eight v;
        source.values(raw[k], r, c, real, s, v);
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j)
            if (!whole && (!real || c + j >= s.cols)) v[j] = 0;
        Held<Source> held;
        held.hold(v);
        take(tile, i, held);
    }
}

// The values of a thread's part of the block, row by row, zeros in the padding: take(tile, i, values).
template <class Source, class Take>
__device__ inline void for_values(Source& source, const BlockPlace& at, Shape s, Take&& take) {
    with_whole<Source>(at, s, [&](auto whole) {
        constexpr int kAhead = kLight<Source> ? kBlockRows : Source::kAhead;
#pragma unroll
        for (int first = 0; first < kBlockRows; first += kAhead) {
            typename Source::Raw raw[kAhead];
            fetch_rows(whole, source, at, s, first, raw);
            use_rows(whole, source, at, s, first, raw, take);
        }
    });
}

// Where the loads of the blocks that a multiprocessor holds are too few bytes to keep the memory busy, each
// block sends for those of a later one, which finds them in the L2 cache. (Blocks of threads that take several
// blocks one after another, the next one's loads on their way while the columns of the last are stored, are
// slower: one H200, CUDA 13.0, 2026-11-22, GELU + 1x128 at 78.8 instead of 83.0 % of a copy.)
constexpr unsigned kBlocksAhead = 132;  // measured on 132 multiprocessors; 66 is as good, 200 is not
template <class Source>
constexpr bool kPrefetches = sizeof(typename Source::Raw) <= 16;
template <class Source>
__device__ inline void prefetch_later_block(const Source& source, Shape s) {
    if constexpr (!kPrefetches<Source>)
        return;
    else {
        constexpr int kLine = 64;  // elements of 2 bytes
        const unsigned later = blockIdx.y * gridDim.x + blockIdx.x + kBlocksAhead;
        const int r = static_cast<int>(later / gridDim.x * kBlock + threadIdx.x / 2),
                  c = static_cast<int>(later % gridDim.x * kBlock + threadIdx.x % 2 * kLine);
        if (r < s.rows && c < s.cols) prefetch(source.address(r, c, s));
    }
}

// body(values) with values(take) as for_values(), once. A light source's loads are on their way when the body
// begins, ahead of what else it has to wait for.
template <class Source, class Body>
__device__ inline void with_values(Source& source, const BlockPlace& at, Shape s, Body&& body) {
    source.prepare(at.column() < s.padded_cols ? at.column() : 0);
    if constexpr (!kLight<Source>) {
        loads_are_sent(source);  // there is room for a few rows' loads at a time: none to be ahead of
        body([&](auto&& take) { for_values(source, at, s, take); });
    } else {
        typename Source::Raw raw[kBlockRows];
        with_whole<Source>(at, s, [&](auto whole) { fetch_rows(whole, source, at, s, 0, raw); });
        body([&](auto&& take) {
            loads_are_sent(source);
            with_whole<Source>(at, s, [&](auto whole) { use_rows(whole, source, at, s, 0, raw, take); });
        });
    }
}

// Each of 16 neighbouring threads gets the largest value of row tx % 4 over all of them.
__device__ inline float amax_of_row(const float (&rows)[kThreadRows], int tx) {
    static_assert(kThreadRows == 4 && kThreadsAcross == 16);
    const auto other = [](float x, int lane) { return __shfl_xor_sync(0xFFFFFFFFu, x, lane); };
    // Every thread gives two rows to its partner and takes two, then one and one.
    const bool low = (tx & 2) == 0, even = (tx & 1) == 0;
    const float a = fmaxf(low ? rows[0] : rows[2], other(low ? rows[2] : rows[0], 2)),
                b = fmaxf(low ? rows[1] : rows[3], other(low ? rows[3] : rows[1], 2));
    float most = fmaxf(even ? a : b, other(even ? b : a, 1));
    most = fmaxf(most, other(most, 4));
    return fmaxf(most, other(most, 8));
}

// The source's own sums of both tiles, from shared memory to where they belong.
template <class Source>
__device__ inline void store_block_sums(const BlockPlace& at, Shape s, const TileTarget& target,
                                        const VectorMemory& shared) {
    const int t = static_cast<int>(threadIdx.x);
    if constexpr (Source::kBiasSums) {
        const int tile = t / kBlock, c = t % kBlock;
        if (at.r0 + tile * kTileRows < s.padded_rows && at.c0 + c < s.padded_cols) {
            const float* const sums =
                reinterpret_cast<const float*>(shared.transposed) + tile * kThreadsDown * kBlock + c;
            float sum = 0;
#pragma unroll
            for (int k = 0; k < kThreadsDown; ++k) sum += sums[k * kBlock];
            target.bias_partials[static_cast<std::size_t>(blockIdx.y * kTiles + tile) * s.padded_cols +
                                 at.c0 + c] = sum;
        }
    }
    if constexpr (Source::kLoss) {
        if (t >= kTiles || at.r0 + t * kTileRows >= s.padded_rows) return;
        double loss = 0;
#pragma unroll
        for (int w = 0; w < kWarps; ++w) loss += shared.losses[t][w];
        target.loss_partials[(blockIdx.y * kTiles + t) * gridDim.x + blockIdx.x] = loss;
    }
}

// The amax, NaN ignored, of the thread's own vector (see own_vector()); the tensor's, NaN kept, goes to its
// state, the source's own sums where they belong. values(take): the block's. keep(tile, i, values): every one
// of them once. again(take): the same values once more.
template <class Source, class Values, class Keep, class Again>
__device__ inline float gather(Source& source, Values&& values, const BlockPlace& at, Shape s,
                               const TileTarget& target, VectorMemory& shared, Keep&& keep, Again&& again) {
    const std::uint32_t seen = target.state->amax_bits;
    const int t = static_cast<int>(threadIdx.x);
    Held<Source> columns;
    Eight sums;
    float rows[kThreadRows];
    values([&](int tile, int i, const Held<Source>& held) {
        columns.template raise<true>(held);
        rows[i] = held.template amax<false>();
        if constexpr (Source::kBiasSums) {
            Eight v;
            held.widen(v);
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) sums[j] = (i == 0 ? 0.0F : sums[j]) + v[j];
        }
        keep(tile, i, held);
        if (i < kThreadRows - 1) return;
        const float of_row = amax_of_row(rows, at.tx);
        if (at.tx < kThreadRows) shared.vectors[kBlock + at.row(tile, at.tx) - at.r0] = of_row;
        if constexpr (Source::kBiasSums)
            store8(reinterpret_cast<float*>(shared.transposed) + (tile * kThreadsDown + at.ty) * kBlock +
                       at.tx * kThreadCols,
                   sums);
        if constexpr (Source::kLoss) {
            const double loss = warp_sum(source.loss);
            if (t % 32 == 0) shared.losses[tile][t / 32] = loss;
            source.loss = 0;
        }
    });
    const float amax = columns.template amax<true>();
    max_amax(target.state, seen, amax);
    // A NaN is rare, so one maximum per element usually serves the columns and the tensor. For whole warps: a source
    // may exchange values within one.
    if (__any_sync(0xFFFFFFFFu, isnan(amax))) {
        columns = {};
        again([&](int, int, const Held<Source>& held) { columns.template raise<false>(held); });
    }
    __syncwarp();
    Eight most;
    columns.widen(most);
#pragma unroll
    for (int j = 0; j < kThreadCols; ++j)  // two rows of threads a warp
        most[j] = fmaxf(most[j], __shfl_xor_sync(0xFFFFFFFFu, most[j], kThreadsAcross));
    if (t % 32 < kThreadsAcross) store8(shared.warps[t / 32] + at.tx * kThreadCols, most);
    __syncthreads();
    store_block_sums<Source>(at, s, target, shared);
    if (t >= kBlock) return shared.vectors[t];
    float largest = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) largest = fmaxf(largest, shared.warps[w][t]);
    return largest;
}

}  // namespace fp8lab::cuda
