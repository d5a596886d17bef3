// The casts with 1x128 scales of a matrix whose parts, side by side, come from the same loads.
#pragma once

#include "kernels/casts/many_scales.cuh"

namespace fp8lab::cuda {

// A block takes the same place of each part (kPartsOf) of a matrix, and then of what is beside the parts, source.rest(), which
// is as wide as one. The values of all parts are held in BF16, to which they are rounded: 87 instead of 54 % of a copy for
// dSwiGLU, whose halves were computed twice (one H200, CUDA 13.0, 2026-11-24, bench cast --shape 8192,4096).
template <class Source>
constexpr bool kHasRest = requires(const Source& source) {
    source.rest();
};
// Rows of a thread whose loads are on their way at once.
template <class Source>
constexpr int kRowsAtOnce = kBlockRows;

// The parts of kCount rows of a thread from `first` on, zeros in the padding.
template <class Source, int kCount, int kParts>
__device__ inline void hold_parts(Source& source, const BlockPlace& at, Shape s, int first,
                                  Held<Source> (&held)[kParts][kBlockRows]) {
    constexpr int kTogether = kRowsTogether<Source>;
    static_assert(kCount % kTogether == 0);
    typename Source::Raw raw[kCount / kTogether];
    const auto row = [&](int k) { return at.row((first + k) / kThreadRows, (first + k) % kThreadRows); };
#pragma unroll
    for (int k = 0; k < kCount; k += kTogether)
        raw[k / kTogether] = fetch_together(
            source, [&](int t) { return min(row(k + t), s.rows - 1); }, at.column(), s);
#pragma unroll
    for (int k = 0; k < kCount; k += kTogether) {
        Held<Source> parts[kTogether][kParts];
        source.parts(raw[k / kTogether], parts);
#pragma unroll
        for (int t = 0; t < kTogether; ++t)
#pragma unroll
            for (int part = 0; part < kParts; ++part)
                held[part][first + k + t] = row(k + t) < s.rows ? parts[t][part] : Held<Source>();
    }
}

template <class Source, class Out>
__device__ inline void cast_parts(Source& source, BlockPlace at, int part_cols, Shape s,
                                  const TileTarget& target, const ScaleVectors& vectors,
                                  VectorMemory& shared) {
    constexpr int kParts = kPartsOf<Source>;
    source.prepare(at.column());
    Held<Source> held[kParts][kBlockRows];
#pragma unroll
    for (int first = 0; first < kBlockRows; first += kRowsAtOnce<Source>)
        // A tile of padding is skipped. Where there is none, the branch keeps the later loads together behind it: spread over
        // the work before it they take longer (0.128 instead of 0.124 ms: gate_slope.cu).
        if (at.r0 + first / kThreadRows * kTileRows < s.rows)
            hold_parts<Source, kRowsAtOnce<Source>>(source, at, s, first, held);
    const auto cast = [&]<class From>(From& from, auto&& values) {
        cast_by_block<Out, false>(
            from, values, at, s, target, false, vectors, shared, [](int, int, const Held<From>&) {}, values);
        at.c0 += part_cols;
    };
#pragma unroll
    for (int part = 0; part + kHasRest<Source> < kParts; ++part) {
        if (part > 0) __syncthreads();  // the part before has been read
        cast(source, values_of<Source>(held[part]));
    }
    if constexpr (kHasRest<Source>) {
        // Its loads are on their way while the last part is cast.
        auto rest = source.rest();
        using Rest = decltype(rest);
        typename Rest::Raw raw[kBlockRows];
        BlockPlace beside = at;
        beside.c0 += part_cols;
        fetch_rows(false, rest, beside, s, 0, raw);
        static_assert(kParts > 1);
        __syncthreads();
        cast(source, values_of<Source>(held[kParts - 1]));
        __syncthreads();
        cast(rest, [&](auto&& take) {
#pragma unroll
            for (int k = 0; k < kBlockRows; ++k) {
                const int tile = k / kThreadRows, i = k % kThreadRows;
                take(tile, i, at.row(tile, i) < s.rows ? Held<Rest>(raw[k]) : Held<Rest>());
            }
        });
    }
}

template <class Source, class Out>
__global__ void __launch_bounds__(kThreads, 2)
    parts_cast(Source source, Shape s, int part_cols, TileTarget target, ScaleVectors vectors) {
    __shared__ __align__(16) VectorMemory shared;
    wait_for_the_kernel_before();
    BlockPlace at = block_place(source, s, blockIdx.y);
    at.c0 = static_cast<int>(blockIdx.x) * kBlock;
    cast_parts<Source, Out>(source, at, part_cols, s, target, vectors, shared);
    leave_scale_1(target);
}

// False: parts that are no multiple of a block's columns wide.
template <class Source, class Out>
bool launch_parts(const Source& source, Shape s, const TileTarget& target, const ScaleVectors& vectors,
                  cudaStream_t stream) {
    const int part_cols = s.cols / (kPartsOf<Source> + kHasRest<Source>);
    if (s.cols != s.padded_cols || s.cols % (kPartsOf<Source> + kHasRest<Source>) != 0 ||
        part_cols % kBlock != 0)
        return false;
    const dim3 grid(static_cast<unsigned>(part_cols / kBlock),
                    static_cast<unsigned>(blocks_of(s.padded_rows)));
    launch("cast kernel", parts_cast<Source, Out>, grid, kThreads, stream, source, s, part_cols, target,
           vectors);
    return true;
}

}  // namespace fp8lab::cuda
