// The one mechanism of every cast: a block takes a tile of kTileRows x kTileCols elements, a thread 4 rows x
// 8 columns of it. The source yields FP32 values; they are cast, stored by rows, transposed in shared memory and
// stored by columns, while amax, statistics and sums over columns are gathered. In BF16 tiles of half the
// height serve where few blocks or few rows would leave threads without work. A source whose matrix has parts, side by side,
// that come from the same loads is read once: the block takes a tile of each part.
#pragma once

#include "core/base/error.h"
#include "kernels/casts/held.cuh"
#include "kernels/casts/many_scales.cuh"
#include "kernels/casts/side_by_side.cuh"
#include "kernels/casts/tile_pieces.cuh"

namespace fp8lab::cuda {

// What is computed besides the payload. nothing: for FP32 copies without a scaling state.
enum class Gather { plain, stats, amax_only, nothing };

// Blocks that a multiprocessor must have room for; 0: the compiler decides.
template <class Source>
constexpr int kBlocksAtOnce = 0;

// Rows of a thread.
template <class Source>
constexpr int kRowsOf = kThreadRows;

template <class Source, class Out, Gather kGather>
__device__ __forceinline__ void cast_tile(Source source, Shape s, const TileTarget& target, TilePlace tile,
                                          std::uint32_t* transposed) {
    constexpr bool kHasStats = kGather == Gather::stats, kHasState = kGather != Gather::nothing,
                   kAmax = kGather == Gather::amax_only;
    constexpr int kRows = kRowsOf<Source>, kDown = kRows * kThreadsDown, kParts = kPartsOf<Source>;
    static_assert(kRows == kThreadRows || Out::kBytes == 2);  // four rows are transposed at once
    static_assert(kParts == 1 || (!Source::kBiasSums && !Source::kLoss));
    const Shape part_shape{s.rows, s.cols / kParts, s.padded_rows, s.padded_cols / kParts};
    const int tx = threadIdx.x % kThreadsAcross, ty = threadIdx.x / kThreadsAcross;
    const int column = kParts > 1 ? static_cast<int>(tile.x) : tile_column(source, s, tile.x);
    const int tile_r = tile.y * kDown, tile_c = column * kTileCols;
    const int r0 = tile_r + ty * kRows, c = tile_c + tx * kThreadCols;
    const bool inside = c < part_shape.padded_cols &&
                        r0 < s.padded_rows;  // padding is in 16s, a thread's part in 2s or 4s and 8s
    const float scale = kHasState && target.scaled && !kAmax ? target.state->scale : 1.0F;
    const std::uint32_t seen = kHasState ? target.state->amax_bits : 0;
    const bool whole =
        tile_r + kDown <= s.rows && tile_c + kTileCols <= part_shape.cols;  // of the block: no padding
    // Threads outside read what is inside, so that no branch stands between the loads.
    const int safe_c = inside ? c : 0;
    void *const rows = inside ? target.rows : nullptr, *const beside = inside && kStoresBf16Too<Out>
                                                                           ? target.beside
                                                                           : nullptr;
    source.prepare(safe_c);
    Gathered g;
    // kAhead fetches are on their way from memory while the rows of one are worked on.
    constexpr int kTogether = kRowsTogether<Source>;
    static_assert(Source::kAhead * kTogether <= kRows);
    typename Source::Raw raw[Source::kAhead];
    const auto fetch = [&](int row) {
        raw[row / kTogether % Source::kAhead] = fetch_together(
            source, [&](int t) { return min(r0 + row + t, s.rows - 1); }, safe_c, s);
    };
#pragma unroll
    for (int i = 0; i < Source::kAhead; ++i) fetch(i * kTogether);
    loads_are_sent(source);
    [[maybe_unused]] Held<Source> parts[kTogether][kParts];
    std::uint32_t low[kParts][kRows] = {},
                  high[kParts][kRows] = {};  // FP8 only: columns 0-3 and 4-7 of a row
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
        const bool real = whole || (inside && r0 + row < s.rows);
        Eight values[kParts];
        const typename Source::Raw& fetched = raw[row / kTogether % Source::kAhead];
        if constexpr (kParts > 1) {
            if (row % kTogether == 0) source.parts(fetched, parts);
#pragma unroll
            for (int part = 0; part < kParts; ++part) parts[row % kTogether][part].widen(values[part]);
        } else {
            source.values(fetched, r0 + row, c, real, s, values[0]);
            round_values<Source>(values[0]);
        }
        if (const int later = row + Source::kAhead * kTogether; row % kTogether == 0 && later < kRows)
            fetch(later);
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
            Eight& v = values[part];
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) {
                if (!whole && (!real || c + j >= part_shape.cols)) v[j] = 0;
                if constexpr (kHasState) g.amax = larger(g.amax, v[j]);
                if constexpr (Source::kBiasSums) g.column[j] += v[j];
            }
            if constexpr (!kAmax) {
                const std::size_t at =
                    static_cast<std::size_t>(r0 + row) * s.padded_cols + part * part_shape.padded_cols + c;
                const uint2 words = cast_row<Out, kHasStats>(v, scale, rows, at, g);
                low[part][row] = words.x, high[part][row] = words.y;
                if constexpr (kStoresBf16Too<Out>) cast_row<ToBf16, false>(v, 1.0F, beside, at, g);
            }
        }
    }
    if constexpr (Out::kBytes == 1 && !kAmax) {
        if (target.columns) {
#pragma unroll
            for (int part = 0; part < kParts; ++part) {
                std::uint32_t words[kThreadCols];
                transpose4(low[part], words);
                transpose4(high[part], words + 4);
                if (part > 0) __syncthreads();  // the part before has been read
                store_columns(static_cast<std::uint8_t*>(target.columns) +
                                  static_cast<std::size_t>(part) * part_shape.padded_cols * s.padded_rows,
                              words, part_shape, tile_r, tile_c, transposed);
            }
        }
    }
    if constexpr (kHasState) max_amax(target.state, seen, g.amax);
    if (kHasState && !kAmax && tile.x == 0 && tile.y == 0 && threadIdx.x == 0) {
        target.state->scale_used = scale;
        *(target.scale_inv ? target.scale_inv : &target.state->scale_inv) = 1 / scale;
    }
    if constexpr (Source::kBiasSums || Source::kLoss)
        store_source_sums(source, g.column, tile, s, target, transposed);
    if constexpr (kHasStats) store_stats(g, tile, tiles_across(s), target);
    if constexpr (requires { source.finish(); }) source.finish();
}

constexpr int kTransposedWords = kTileCols * kThreadsDown;

template <class Source, class Out, Gather kGather>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce<Source>)
    tile_cast(Source source, Shape s, TileTarget target) {
    __shared__ __align__(16) std::uint32_t transposed[kTransposedWords];
    wait_for_the_kernel_before();
    cast_tile<Source, Out, kGather>(source, s, target, {blockIdx.x, blockIdx.y, gridDim.x}, transposed);
}

template <class Source, class Out, Gather kGather>
void launch_tiles(const Source& source, Shape s, const TileTarget& target, cudaStream_t stream) {
    constexpr int kDown = kRowsOf<Source> * kThreadsDown;
    if (kPartsOf < Source >> 1 && s.cols != s.padded_cols)
        throw Error(ErrorKind::backend, "cast", "a matrix of several parts has no padding between them");
    const dim3 grid(static_cast<unsigned>(tiles_across(s.padded_cols / kPartsOf<Source>)),
                    static_cast<unsigned>((s.padded_rows + kDown - 1) / kDown));
    launch("cast kernel", tile_cast<Source, Out, kGather>, grid, kThreads, stream, source, s, target);
}

template <class Source, class Out>
void launch_payload(const Source& source, Shape s, const TileTarget& target, cudaStream_t stream) {
    if (target.stats)
        launch_tiles<Source, Out, Gather::stats>(source, s, target, stream);
    else
        launch_tiles<Source, Out, Gather::plain>(source, s, target, stream);
}

// A source of so few rows that one tile of half the height holds them: its sums and counts are one tile's as
// well. They are always added up so, whether there are statistics or not: a step gives the same bytes.
constexpr int kFewRows = kThreadRows / 2;
template <class Source>
struct Low : Source {
    static constexpr int kAhead = kFewRows;
};
template <class Source>
constexpr int kRowsOf<Low<Source>> = kFewRows;

// The optimiser's tiles are its own; other sources of which this is false never have so few rows.
template <class Source>
constexpr bool kMayBeLow = kManyScales<Source>;

// FP32 values of emulated recipes, which are only copied: casts of their own follow.
template <class Source>
constexpr bool kOnlyCopied = false;

inline TileTarget tile_target(const CastTarget& to, float* bias_partials = nullptr,
                              double* loss_partials = nullptr) {
    return {to.rows,       to.columns, to.state,     to.stats_partials, bias_partials,
            loss_partials, to.scaled,  to.scale_inv, to.beside};
}

template <class Source, __nv_fp8_interpretation_t kKind>
void launch_fp8(const Source& source, Shape s, const TileTarget& target, cudaStream_t stream) {
    if (!target.beside) return launch_payload<Source, ToFp8<kKind>>(source, s, target, stream);
    if constexpr (kManyScales<Source>) {
        if (target.stats) throw Error(ErrorKind::backend, "cast", "statistics are those of one cast");
        launch_tiles<Source, ToFp8AndBf16<kKind>, Gather::plain>(source, s, target, stream);
    } else {
        throw Error(ErrorKind::backend, "cast", "this source has one cast");
    }
}

template <class Source>
void launch_cast(const Source& source, Shape s, const CastTarget& to, Pass pass, cudaStream_t stream,
                 float* bias_partials = nullptr, double* loss_partials = nullptr) {
    const TileTarget target = tile_target(to, bias_partials, loss_partials);
    if constexpr (kOnlyCopied<Source>) {
        if (to.element != Element::f32 || pass != Pass::cast)
            throw Error(ErrorKind::backend, "cast", "this source in FP32 is copied to FP32 only");
        launch_tiles<Source, ToF32, Gather::nothing>(source, s, target, stream);
    } else {
        if (to.beside && (to.scaling != ScaleMode::tensor || bytes_of(to.element) != 1))
            throw Error(ErrorKind::backend, "cast", "BF16 goes beside FP8 codes with one scale");
        if (to.scaling != ScaleMode::tensor) {
            if constexpr (kManyScales<Source>)
                return launch_vectors(source, s, target, to, pass, stream);
            else
                throw Error(ErrorKind::backend, "cast", "this source has one scale");
        }
        if (pass == Pass::amax_only)
            return launch_tiles<Source, ToBf16, Gather::amax_only>(source, s, target, stream);
        switch (to.element) {
            case Element::f32:
                return launch_tiles<Source, ToF32, Gather::nothing>(source, s, target, stream);
            case Element::bf16:
                if constexpr (kMayBeLow<Source>)
                    if (s.padded_rows <= kFewRows * kThreadsDown)
                        return launch_payload<Low<Source>, ToBf16>({source}, s, target, stream);
                return launch_payload<Source, ToBf16>(source, s, target, stream);
            case Element::e4m3:
                return launch_fp8<Source, __NV_E4M3>(source, s, target, stream);
            case Element::e5m2:
                if constexpr (kMayBeE5m2<Source>)
                    return launch_fp8<Source, __NV_E5M2>(source, s, target, stream);
                else
                    throw Error(ErrorKind::backend, "cast", kForwardIsE4m3);
        }
    }
}

// The casts of a training step on tensor cores alone, of a source that is compiled for them only: one scale, or blocks of its
// parts; no statistics. False: another cast, of which a general source takes care.
template <class Source>
bool launch_step_cast(const Source& source, Shape s, const CastTarget& to, cudaStream_t stream) {
    if (to.beside) return false;
    const TileTarget target = tile_target(to);
    const auto as = [&]<class Out>(Out) {
        if (to.scaling == ScaleMode::tensor)
            return launch_tiles<Source, Out, Gather::plain>(source, s, target, stream), true;
        constexpr bool kHasParts = kPartsOf<Source> != 1 && Out::kBytes == 1;
        if constexpr (kHasParts)
            if (to.scaling == ScaleMode::block128)
                return launch_parts<Source, Out>(source, s, target, to.vectors, stream);
        return false;
    };
    if (to.element == Element::bf16) return as(ToBf16());
    if (to.element == Element::e4m3) return as(ToFp8<__NV_E4M3>());
    if constexpr (kMayBeE5m2<Source>)
        if (to.element == Element::e5m2) return as(ToFp8<__NV_E5M2>());
    return false;
}

// run(std::bool_constant) for fetch_unpadded<kEights>().
template <class Run>
void with_eights(Shape s, Run run) {
    if (s.cols % kThreadCols == 0)
        run(std::true_type());
    else
        run(std::false_type());
}

// `run` with a null pointer of the type that the element has in memory.
template <class Run>
void with_type(Element element, Run run) {
    if (element == Element::f32)
        run(static_cast<const float*>(nullptr));
    else
        run(static_cast<const __nv_bfloat16*>(nullptr));
}

}  // namespace fp8lab::cuda
