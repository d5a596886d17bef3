// The casts with 1x128 scales of a matrix whose parts, side by side, come from the same loads.
#pragma once

#include "kernels/casts/vector_tile.cuh"

namespace fp8lab::cuda {

// A block takes the same place of each part (kPartsOf) of a matrix. What is beside the parts in the matrix, source.rest(), has
// blocks of its own. The values of all parts are held, in BF16, to which they are rounded: 87 instead of 54 % of a copy for
// dSwiGLU, whose halves were computed twice (one H200, CUDA 13.0, 2026-11-24, bench cast --shape 8192,4096).
template <class Source>
constexpr bool kHasRest = requires(const Source& source) {
    source.rest();
};
// Rows of a thread whose loads are on their way at once.
template <class Source>
constexpr int kRowsAtOnce = kBlockRows;

template <class Source, class Out>
__device__ inline void cast_parts(Source& source, BlockPlace at, int part_cols, Shape s,
                                  const TileTarget& target, const ScaleVectors& vectors,
                                  VectorMemory& shared) {
    constexpr int kParts = kPartsOf<Source>;
    source.prepare(at.column());
    Held<true> held[kParts];
#pragma unroll
    for (int first = 0; first < kBlockRows; first += kRowsAtOnce<Source>) {
        typename Source::Raw raw[kRowsAtOnce<Source>];  // its registers become those of the values
        fetch_rows(false, source, at, s, first, raw);
#pragma unroll
        for (int i = 0; i < kRowsAtOnce<Source>; ++i) {
            const int k = first + i;
            Eight v[kParts];
            source.parts(raw[i], v);
            const bool real = at.row(k / kThreadRows, k % kThreadRows) < s.rows;
#pragma unroll
            for (int part = 0; part < kParts; ++part) {
#pragma unroll
                for (int j = 0; j < kThreadCols; ++j)
                    if (!real) v[part][j] = 0;
                held[part].put(k, v[part]);
            }
        }
    }
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
        const auto values = [&](auto&& take) {
#pragma unroll
            for (int k = 0; k < kBlockRows; ++k) {
                Eight v;
                held[part].get(k, v);
                take(k / kThreadRows, k % kThreadRows, v);
            }
        };
        if (part > 0) __syncthreads();  // the part before has been read
        cast_by_block<Out, false>(
            source, values, at, s, target, false, vectors, shared, [](int, int, const Eight&) {}, values);
        at.c0 += part_cols;
    }
}

template <class Source, class Out>
__global__ void __launch_bounds__(kThreads, 2)
    parts_cast(Source source, Shape s, int part_cols, TileTarget target, ScaleVectors vectors) {
    __shared__ __align__(16) VectorMemory shared;
    wait_for_the_kernel_before();
    const int x = static_cast<int>(blockIdx.x), parts_across = part_cols / kBlock;
    BlockPlace at = block_place(source, s, blockIdx.y);
    at.c0 = x * kBlock;
    if (x < parts_across) {
        cast_parts<Source, Out>(source, at, part_cols, s, target, vectors, shared);
        leave_scale_1(target);
    } else if constexpr (kHasRest<Source>) {
        auto rest = source.rest();
        at.c0 += kPartsOf<Source> * part_cols - part_cols;
        cast_loaded_block<true, Out, false>(rest, at, s, target, false, vectors, shared);
    }
}

// False: parts that are no multiple of a block's columns wide.
template <class Source, class Out>
bool launch_parts(const Source& source, Shape s, const TileTarget& target, const ScaleVectors& vectors,
                  cudaStream_t stream) {
    const int part_cols = s.cols / (kPartsOf<Source> + kHasRest<Source>);
    if (s.cols != s.padded_cols || s.cols % (kPartsOf<Source> + kHasRest<Source>) != 0 ||
        part_cols % kBlock != 0)
        return false;
    const dim3 grid(static_cast<unsigned>(part_cols / kBlock * (1 + kHasRest<Source>)),
                    static_cast<unsigned>(blocks_of(s.padded_rows)));
    launch("cast kernel", parts_cast<Source, Out>, grid, kThreads, stream, source, s, part_cols, target,
           vectors);
    return true;
}

}  // namespace fp8lab::cuda
