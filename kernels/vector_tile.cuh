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
// `y`: the block's among the rows of blocks.
__device__ inline BlockPlace block_place(unsigned y) {
    return {static_cast<int>(y) * kBlock, static_cast<int>(blockIdx.x) * kBlock,
            static_cast<int>(threadIdx.x % kThreadsAcross), static_cast<int>(threadIdx.x / kThreadsAcross)};
}

constexpr int kWordsDown = kBlock / 4;  // of a column's codes
struct VectorMemory {
    // Codes by columns; before them, the source's sums over columns by rows of threads, (kTiles *
    // kThreadsDown, kBlock).
    std::uint32_t turned[kBlock * kWordsDown];
    float warps[kWarps][kBlock];  // amaxes of columns, by warp
    // Of the block's columns, then of its rows: amaxes, later scales.
    float vectors[2 * kBlock];
    float most[kWarps];
    double losses[kTiles][kWarps];
};

constexpr int kRows = kTiles * kThreadRows;  // of a thread

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
        take(tile, i, v);
    }
}

// The values of a thread's part of the block, row by row, zeros in the padding: take(tile, i, values).
template <class Source, class Take>
__device__ inline void for_values(Source& source, const BlockPlace& at, Shape s, Take&& take) {
    with_whole<Source>(at, s, [&](auto whole) {
        constexpr int kAhead = kLight<Source> ? kRows : Source::kAhead;
#pragma unroll
        for (int first = 0; first < kRows; first += kAhead) {
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
__device__ inline void prefetch_later_block(const Source& source, Shape s) {
    if constexpr (sizeof(typename Source::Raw) > 16)
        return;
    else {
        constexpr int kLine = 64;  // elements of 2 bytes
        const unsigned later = blockIdx.y * gridDim.x + blockIdx.x + kBlocksAhead;
        const int r = static_cast<int>(later / gridDim.x * kBlock + threadIdx.x / 2),
                  c = static_cast<int>(later % gridDim.x * kBlock + threadIdx.x % 2 * kLine);
        if (r < s.rows && c < s.cols) asm volatile("prefetch.global.L2 [%0];" ::"l"(source.address(r, c, s)));
    }
}

// body(values) with values(take) as for_values(), once. A light source's loads are on their way when the body
// begins, ahead of what else it has to wait for.
template <class Source, class Body>
__device__ inline void with_values(Source& source, const BlockPlace& at, Shape s, Body&& body) {
    source.prepare(at.column() < s.padded_cols ? at.column() : 0);
    if constexpr (!kLight<Source>) {
        loads_are_sent(source);
        body([&](auto&& take) { for_values(source, at, s, take); });
    } else {
        typename Source::Raw raw[kRows];
        with_whole<Source>(at, s, [&](auto whole) { fetch_rows(whole, source, at, s, 0, raw); });
        body([&](auto&& take) {
            loads_are_sent(source);
            with_whole<Source>(at, s, [&](auto whole) { use_rows(whole, source, at, s, 0, raw, take); });
        });
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

// The source's own sums of both tiles, from shared memory to where they belong.
template <class Source>
__device__ inline void store_block_sums(const BlockPlace& at, Shape s, const TileTarget& target,
                                        const VectorMemory& shared) {
    const int t = static_cast<int>(threadIdx.x);
    if constexpr (Source::kBiasSums) {
        const int tile = t / kBlock, c = t % kBlock;
        if (at.r0 + tile * kTileRows < s.padded_rows && at.c0 + c < s.padded_cols) {
            const float* const sums =
                reinterpret_cast<const float*>(shared.turned) + tile * kThreadsDown * kBlock + c;
            float sum = 0;
#pragma unroll
            for (int k = 0; k < kThreadsDown; ++k) sum += sums[k * kBlock];
            target.bias_partials[static_cast<std::size_t>(at.r0 / kTileRows + tile) * s.padded_cols + at.c0 +
                                 c] = sum;
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
    Eight columns = {}, sums;
    float rows[kThreadRows];
    values([&](int tile, int i, const Eight& v) {
        rows[i] = 0;
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) {
            columns[j] = larger(columns[j], v[j]);
            rows[i] = fmaxf(rows[i], fabsf(v[j]));
            if constexpr (Source::kBiasSums) sums[j] = (i == 0 ? 0.0F : sums[j]) + v[j];
        }
        keep(tile, i, v);
        if (i < kThreadRows - 1) return;
        const float of_row = amax_of_row(rows, at.tx);
        if (at.tx < kThreadRows) shared.vectors[kBlock + at.row(tile, at.tx) - at.r0] = of_row;
        if constexpr (Source::kBiasSums)
            store8(reinterpret_cast<float*>(shared.turned) + (tile * kThreadsDown + at.ty) * kBlock +
                       at.tx * kThreadCols,
                   sums);
        if constexpr (Source::kLoss) {
            const double loss = warp_sum(source.loss);
            if (t % 32 == 0) shared.losses[tile][t / 32] = loss;
            source.loss = 0;
        }
    });
    float amax = 0;
#pragma unroll
    for (int j = 0; j < kThreadCols; ++j) amax = larger(amax, columns[j]);
    max_amax(target.state, seen, amax);
    if (isnan(amax)) {  // rare, so that one maximum an element usually serves the columns and the tensor
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) columns[j] = 0;
        again([&](int, int, const Eight& v) {
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) columns[j] = fmaxf(columns[j], fabsf(v[j]));
        });
    }
    __syncwarp();
#pragma unroll
    for (int j = 0; j < kThreadCols; ++j)  // two rows of threads a warp
        columns[j] = fmaxf(columns[j], __shfl_xor_sync(0xFFFFFFFFu, columns[j], kThreadsAcross));
    if (t % 32 < kThreadsAcross) store8(shared.warps[t / 32] + at.tx * kThreadCols, columns);
    __syncthreads();
    store_block_sums<Source>(at, s, target, shared);
    if (t >= kBlock) return shared.vectors[t];
    float largest = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) largest = fmaxf(largest, shared.warps[w][t]);
    return largest;
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
__device__ inline void keep_amax(const BlockPlace& at, Shape s, const ScaleVectors& to, float amax) {
    const OwnVector own = own_vector(at, s);
    if (own.index < own.padded)
        atomicMax(to.amaxes + (own.is_column ? s.padded_rows : 0) + own.index, __float_as_uint(amax));
}

// Scaling::rows, second launch.
__device__ inline void load_scales(const BlockPlace& at, Shape s, const ScaleVectors& from,
                                   VectorMemory& shared) {
    const OwnVector own = own_vector(at, s);
    const float* const scales = from.scales + (own.is_column ? s.padded_rows : 0);
    shared.vectors[threadIdx.x] = own.index < own.padded ? scales[own.index] : 1.0F;
}

// Of all amaxes of the block.
__device__ inline float largest_of_block(float amax, VectorMemory& shared) {
    const std::uint32_t most = __reduce_max_sync(0xFFFFFFFFu, __float_as_uint(amax));
    if (threadIdx.x % 32 == 0) shared.most[threadIdx.x / 32] = __uint_as_float(most);
    __syncthreads();
    float largest = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) largest = fmaxf(largest, shared.most[w]);
    return largest;
}

// The inverse of the scale of the thread's own vector, or of the whole block, to where products read it.
__device__ inline void store_inverse(const BlockPlace& at, Shape s, const ScaleVectors& to, bool squares,
                                     float inverse) {
    const int x = at.c0 / kBlock, y = at.r0 / kBlock;
    if (squares) {
        const auto up4 = [](int n) { return (n + 3) / 4 * 4; };
        if (threadIdx.x != 0) return;
        if (to.rows) to.rows[y * up4(blocks_of(s.padded_cols)) + x] = inverse;
        if (to.columns) to.columns[x * up4(blocks_of(s.padded_rows)) + y] = inverse;
        return;
    }
    const OwnVector own = own_vector(at, s);
    float* const inverses = own.is_column ? to.columns : to.rows;
    if (inverses && own.index < own.padded)
        inverses[static_cast<std::size_t>(own.is_column ? y : x) * own.padded + own.index] = inverse;
}

// Word `word` of column j of the eight columns of a thread in column tx of threads, permuted so that neither
// side meets a bank twice.
__device__ inline int turned_block_word(int tx, int j, int word) {
    return (tx * kThreadCols + j) * kWordsDown + (word ^ (tx * 2));
}

// 8 threads a column, 16 bytes each: whole lines.
__device__ inline void store_block_columns(std::uint8_t* out, const BlockPlace& at, Shape s,
                                           const std::uint32_t* turned) {
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
        uint4 v = *reinterpret_cast<const uint4*>(turned + pass * kColumns * kWordsDown +
                                                  (from ^ (pass * kColumns / kThreadCols / 2 * 4)));
        if (tx & 1) v = make_uint4(v.z, v.w, v.x, v.y);
        *reinterpret_cast<uint4*>(out) = v;
    }
}

// Both layouts of the block. values(take): its values as in for_values().
template <class Out, bool kStats, class Values>
__device__ inline void cast_block(Values&& values, const BlockPlace& at, Shape s, const TileTarget& target,
                                  VectorMemory& shared) {
    const int c = at.column();
    Eight columns;
    load8(shared.vectors + at.tx * kThreadCols, columns);
    const bool measures_columns = kStats && !target.rows;
    std::uint8_t* const rows = static_cast<std::uint8_t*>(target.rows) +
                               static_cast<std::size_t>(at.row(0, 0)) * s.padded_cols + c;
    Gathered g;
    uint2 across[kThreadRows];
    std::uint32_t low[kThreadRows], high[kThreadRows];
    values([&](int tile, int i, const Eight& v) {
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
        std::uint32_t turned[kThreadCols];
        turn4(low, turned);
        turn4(high, turned + 4);
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j)
            shared.turned[turned_block_word(at.tx, j, tile * kThreadsDown + at.ty)] = turned[j];
        if constexpr (kStats) {
            if (at.r0 + tile * kTileRows < s.padded_rows)
                store_stats(g, (at.r0 / kTileRows + tile) * tiles_across(s) + at.c0 / kTileCols, target);
            g = {};
        }
    });
    if (!target.columns) return;
    __syncthreads();
    store_block_columns(static_cast<std::uint8_t*>(target.columns), at, s, shared.turned);
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
    const BlockPlace at = block_place(blockIdx.y);
    with_values(source, at, s, [&](auto&& values) {
        const auto again = [&](auto&& take) {
            Source copy = source;
            for_values(copy, at, s, take);
        };
        keep_amax(at, s, vectors,
                  gather(
                      source, values, at, s, target, shared, [](int, int, const Eight&) {}, again));
    });
}

template <class Source, class Out, bool kStats>
__global__ void __launch_bounds__(kThreads, kResident<Source>)
    row_cast(Source source, Shape s, TileTarget target, ScaleVectors vectors) {
    __shared__ __align__(16) VectorMemory shared;
    wait_for_the_kernel_before();
    const BlockPlace at =
        block_place(gridDim.y - 1 - blockIdx.y);  // of what the amaxes were found in last, part is in L2
    with_values(source, at, s, [&](auto&& values) {
        load_scales(at, s, vectors, shared);
        __syncthreads();
        cast_block<Out, kStats>(values, at, s, target, shared);
    });
    leave_scale_1(target);
}

template <class Source, class Out, bool kStats>
__global__ void __launch_bounds__(kThreads, 2)
    block_cast(Source source, Shape s, TileTarget target, bool squares, ScaleVectors vectors) {
    __shared__ __align__(16) VectorMemory shared;
    wait_for_the_kernel_before();
    const BlockPlace at = block_place(blockIdx.y);
    with_values(source, at, s, [&](auto&& values) {
        prefetch_later_block(source, s);
        const float max_finite = target.state->max_finite;
        const ScaleControls how = *vectors.controls;
        Eight held[kRows];
        const auto keep = [&](int tile, int i, const Eight& v) {
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) held[tile * kThreadRows + i][j] = v[j];
        };
        const auto again = [&](auto&& take) {
#pragma unroll
            for (int k = 0; k < kRows; ++k) take(k / kThreadRows, k % kThreadRows, held[k]);
        };
        const float amax = gather(source, values, at, s, target, shared, keep, again);
        const float largest = squares ? largest_of_block(amax, shared) : amax,
                    scale = scale_of(largest, max_finite, how.margin, 1.0F, how.pow2 != 0);
        shared.vectors[threadIdx.x] = scale;
        store_inverse(at, s, vectors, squares, 1 / scale);
        __syncthreads();
        cast_block<Out, kStats>(again, at, s, target, shared);
    });
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
