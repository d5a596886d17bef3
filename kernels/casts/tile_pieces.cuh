// What the kernels of a cast are made of: types of payload, sums of a block, the transpose of a tile in shared
// memory. A tile is kTileRows x kTileCols elements; a thread works on 4 rows x 8 columns of it
// (2 x 8 of a tile half as high).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <type_traits>

#include "kernels/casts/eight.cuh"
#include "kernels/device/cast_sums.cuh"
#include "kernels/device/device.h"
#include "kernels/device/instructions.cuh"
#include "kernels/device/launch.h"
#include "kernels/device/launching.cuh"

namespace fp8lab::cuda {

constexpr int kThreads = 256, kThreadRows = 4;
constexpr int kThreadsAcross = kTileCols / kThreadCols, kThreadsDown = kTileRows / kThreadRows;
static_assert(kThreadsAcross * kThreadsDown == kThreads);

// ---- what an element is stored as
struct ToF32 {
    static constexpr int kBytes = 4;
};
struct ToBf16 {
    static constexpr int kBytes = 2;
    // Half a step beyond the largest finite value; ties go to Inf.
    static __device__ bool overflows(float x) { return fabsf(x) >= __uint_as_float(0x7F7F8000u); }
    static __device__ std::uint32_t pair(float low, float high) {
        const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
        return *reinterpret_cast<const std::uint32_t*>(&both);
    }
    static __device__ float2 back(std::uint32_t codes) {
        return make_float2(__uint_as_float(codes << 16), __uint_as_float(codes & 0xFFFF0000u));
    }
};
template <__nv_fp8_interpretation_t kKind>
struct ToFp8 {
    static constexpr int kBytes = 1;
    static __device__ bool overflows(float x) {  // what saturation changes: numerics.md 3.3
        return kKind == __NV_E4M3 ? fabsf(x) > 464.0F : fabsf(x) >= 61440.0F;
    }
    static __device__ std::uint32_t quad(float a, float b, float c, float d) {
        return fp8_quad<kKind>(a, b, c, d);
    }
    static __device__ float2 back(std::uint32_t codes) {
        return __half22float2(
            __half2(__nv_cvt_fp8x2_to_halfraw2(static_cast<__nv_fp8x2_storage_t>(codes), kKind)));
    }
};

// FP8 codes, and beside them the values in BF16 (CastTarget::beside).
template <__nv_fp8_interpretation_t kKind>
struct ToFp8AndBf16 : ToFp8<kKind> {};
template <class Out>
constexpr bool kStoresBf16Too = false;
template <__nv_fp8_interpretation_t kKind>
constexpr bool kStoresBf16Too<ToFp8AndBf16<kKind>> = true;

// What a source does with what prepare() loaded: once the loads of its first elements are on their way, which
// would otherwise wait for it.
template <class Source>
__device__ inline void loads_are_sent(Source& source) {
    if constexpr (requires { source.ready(); }) source.ready();
}

// Which column of tiles a block takes. Sources that read the same memory for several columns of tiles say which of them
// neighbouring blocks take.
template <class Source>
__device__ inline int tile_column(const Source& source, Shape s, unsigned x) {
    if constexpr (requires { source.tile_column(s, x); })
        return source.tile_column(s, x);
    else
        return static_cast<int>(x);
}

// Whether a source is ever cast to E5M2. Tensor cores take E4M3 operands in the forward pass (engine.h), so kernels
// for other sources would never be used.
template <class Source>
constexpr bool kMayBeE5m2 = true;
constexpr auto kForwardIsE4m3 = "operands of the forward pass are E4M3 on the tensor cores";

// Parts of the matrix, side by side, that the source computes from the same loads, by parts(). More than one: its matrix
// has no padding in its columns.
template <class Source>
constexpr int kPartsOf = 1;
// Rows of a thread whose parts the source computes at once, from what fetch() gives for all of them.
template <class Source>
constexpr int kRowsTogether = 1;
// row(t): the t-th of them.
template <class Source, class Row>
__device__ inline typename Source::Raw fetch_together(const Source& source, Row&& row, int c, Shape s) {
    static_assert(kRowsTogether<Source> == 1 || kRowsTogether<Source> == 2);
    if constexpr (kRowsTogether<Source> == 2)
        return source.fetch(row(0), row(1), c, s);
    else
        return source.fetch(row(0), c, s);
}

struct TileTarget {
    void *rows, *columns;
    ScaleState* state;
    CastSums* stats;
    float* bias_partials;   // (tiles_down, padded_cols), of sources with kBiasSums
    double* loss_partials;  // one a block, of sources with kLoss
    bool scaled;
    float* scale_inv = nullptr;  // null: the state's
    void* beside = nullptr;      // of kStoresBf16Too
};

// The sum of a block, valid in thread 0.
template <class T>
__device__ T block_sum(T value, T* shared) {
    value = warp_sum(value);
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    T total = 0;
    if (threadIdx.x == 0)
        for (int w = 0; w < kThreads / 32; ++w) total += shared[w];
    return total;
}

// `seen`: the tensor's amax when the block began. Most warps of a large tensor have no larger value and skip the
// atomic, and no thread waits for one.
__device__ inline void max_amax(ScaleState* state, std::uint32_t seen, float amax) {
    const std::uint32_t bits = __reduce_max_sync(0xFFFFFFFFu, __float_as_uint(amax));
    if (threadIdx.x % 32 == 0 && bits > seen) atomicMax(&state->amax_bits, bits);
}

// Column c of the tile holds its 64 bytes as 16 words, permuted so that neither side meets a bank twice.
__device__ inline int transposed_word(int column, int word) {
    return column * kThreadsDown + (word ^ (column / kThreadCols % 16));
}

// 4 x 4 bytes: row i in rows[i] becomes column j in columns[j].
__device__ inline void transpose4(const std::uint32_t (&rows)[4], std::uint32_t* columns) {
    const std::uint32_t a = __byte_perm(rows[0], rows[1], 0x5140), b = __byte_perm(rows[2], rows[3], 0x5140);
    const std::uint32_t c = __byte_perm(rows[0], rows[1], 0x7362), d = __byte_perm(rows[2], rows[3], 0x7362);
    columns[0] = __byte_perm(a, b, 0x5410);
    columns[1] = __byte_perm(a, b, 0x7632);
    columns[2] = __byte_perm(c, d, 0x5410);
    columns[3] = __byte_perm(c, d, 0x7632);
}

// Stores the 4 x 8 codes of each thread by columns, through shared memory.
__device__ inline void store_columns(std::uint8_t* out, const std::uint32_t (&words)[kThreadCols], Shape s,
                                     int tile_r, int tile_c, std::uint32_t* transposed) {
    const int tx = threadIdx.x % kThreadsAcross, ty = threadIdx.x / kThreadsAcross;
#pragma unroll
    for (int j = 0; j < kThreadCols; ++j) {
        // Neighbouring rows write neighbouring columns' words at a time: other banks.
        const int column = ty % 2 ? j ^ 1 : j;
        transposed[transposed_word(tx * kThreadCols + column, ty)] = ty % 2 ? words[j ^ 1] : words[j];
    }
    __syncthreads();
    // 4 threads per column, 16 bytes each.
#pragma unroll
    for (int pass = 0; pass < kTileCols * 4 / kThreads; ++pass) {
        const int item = pass * kThreads + static_cast<int>(threadIdx.x), column = item / 4, part = item % 4;
        const int c = tile_c + column, r = tile_r + part * 16;
        if (c >= s.padded_cols || r >= s.padded_rows) continue;
        const int f = column / kThreadCols % 16;
        uint4 v =
            *reinterpret_cast<const uint4*>(transposed + column * kThreadsDown + ((part ^ (f / 4)) * 4));
        if (f & 1) v = make_uint4(v.y, v.x, v.w, v.z);
        if (f & 2) v = make_uint4(v.z, v.w, v.x, v.y);
        *reinterpret_cast<uint4*>(out + static_cast<std::size_t>(c) * s.padded_rows + r) = v;
    }
}

// What a thread gathers while it casts.
struct Gathered {
    float amax = 0;
    std::uint32_t underflow = 0, overflow = 0;
    CastSums sums;
    Eight column = {};  // sums over the thread's rows
};

// A thread's columns have one scale, or one each.
__device__ inline float of_column(float scale, int) { return scale; }
__device__ inline float of_column(const Eight& scales, int j) { return scales[j]; }

// What casting v to the codes in `words` did.
template <class Out, int kWords, class Scales>
__device__ inline void measure(const Eight& v, const std::uint32_t (&words)[kWords], const Scales& scale,
                               Gathered& g) {
    constexpr int kPairBits = Out::kBytes * 16, kPairs = 32 / kPairBits;
    // Two codes at a time: of one at a time nvcc 13.0 made zeros, a quarter of them, in the cast of dSwiGLU (H100 and H200,
    // 2026-11-24).
    float2 decoded[kThreadCols / 2];
#pragma unroll
    for (int pair = 0; pair < kThreadCols / 2; ++pair)
        decoded[pair] = Out::back(words[pair / kPairs] >> (pair % kPairs * kPairBits % 32));
#pragma unroll
    for (int j = 0; j < kThreadCols; ++j) {
        const float q = (j % 2 ? decoded[j / 2].y : decoded[j / 2].x) * (1 / of_column(scale, j));
        const bool became_zero = v[j] != 0 && q == 0;
        g.underflow += became_zero;
        g.overflow += Out::overflows(v[j] * of_column(scale, j));
        const auto kept = static_cast<double>(isfinite(v[j]) ? v[j] : 0.0F),
                   error = static_cast<double>(isfinite(v[j]) ? v[j] - q : 0.0F);
        // Squares of floats are exact in FP64: fused or not, the sums are the same.
        g.sums.signal = fma(kept, kept, g.sums.signal);
        g.sums.noise = fma(error, error, g.sums.noise);
        g.sums.mass.add(kept, became_zero);
        g.sums.fourth = fma(kept * kept, kept * kept, g.sums.fourth);
    }
}

// Casts 8 values and stores them at element `at` of `rows` (null: nowhere). FP8 comes back as well, four
// columns a word. Scales: one float, or an Eight.
template <class Out, bool kStats, class Scales>
__device__ inline uint2 cast_row(const Eight& v, const Scales& scale, void* rows, std::size_t at,
                                 Gathered& g) {
    if constexpr (Out::kBytes == 4) {
        if (rows) store8(static_cast<float*>(rows) + at, v);
        return {};
    } else {
        Eight scaled;
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) scaled[j] = v[j] * of_column(scale, j);
        if constexpr (Out::kBytes == 2) {
            std::uint32_t pairs[4];
#pragma unroll
            for (int j = 0; j < 4; ++j) pairs[j] = Out::pair(scaled[2 * j], scaled[2 * j + 1]);
            if constexpr (kStats) measure<Out>(v, pairs, scale, g);
            if (rows)
                *reinterpret_cast<uint4*>(static_cast<std::uint16_t*>(rows) + at) =
                    make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
            return {};
        } else {
            const std::uint32_t quads[2] = {Out::quad(scaled[0], scaled[1], scaled[2], scaled[3]),
                                            Out::quad(scaled[4], scaled[5], scaled[6], scaled[7])};
            if constexpr (kStats) measure<Out>(v, quads, scale, g);
            const uint2 words = make_uint2(quads[0], quads[1]);
            if (rows) *reinterpret_cast<uint2*>(static_cast<std::uint8_t*>(rows) + at) = words;
            return words;
        }
    }
}

// Threads' sums over their rows, then over the 16 rows of threads, in order.
__device__ inline void store_column_sums(float* out, const Eight& column, int columns, float* sums) {
    const int tx = threadIdx.x % kThreadsAcross, ty = threadIdx.x / kThreadsAcross;
    const int c = static_cast<int>(threadIdx.x);
    __syncthreads();  // the memory has served the transpose
    store8(sums + ty * kTileCols + tx * kThreadCols, column);
    __syncthreads();
    if (c >= kTileCols || c >= columns) return;
    float sum = 0;
#pragma unroll
    for (int k = 0; k < kThreadsDown; ++k) sum += sums[k * kTileCols + c];
    out[c] = sum;
}

// A tile: its column and row of tiles, of so many columns that are worked on.
struct TilePlace {
    unsigned x, y, across;
};

// The sums that a source has gathered over a tile: of columns, of losses.
template <class Source>
__device__ inline void store_source_sums(const Source& source, const Eight& column, TilePlace tile, Shape s,
                                         const TileTarget& target, std::uint32_t* transposed) {
    [[maybe_unused]] __shared__ double losses[kThreads / 32];
    if constexpr (Source::kLoss) {
        const double loss = warp_sum(source.loss);
        if (threadIdx.x % 32 == 0) losses[threadIdx.x / 32] = loss;
    }
    const int tile_c = static_cast<int>(tile.x) * kTileCols;
    store_column_sums(target.bias_partials + static_cast<std::size_t>(tile.y) * s.padded_cols + tile_c,
                      column, s.padded_cols - tile_c, reinterpret_cast<float*>(transposed));
    // The last warp has no column to add up.
    if (Source::kLoss && threadIdx.x == kThreads - 1) {
        double loss = 0;
#pragma unroll
        for (int w = 0; w < kThreads / 32; ++w) loss += losses[w];
        target.loss_partials[tile.y * tile.across + tile.x] = loss;
    }
}

// A row of tiles has `across` sums. Where fewer are worked on, the others are zeros.
__device__ inline void store_stats(const Gathered& g, TilePlace tile, int across, const TileTarget& target) {
    CastSums* const row = target.stats + tile.y * static_cast<unsigned>(across);
    store_cast_sums<kThreads>(g.sums, row + tile.x);
    for (unsigned other = tile.x + tile.across; other < static_cast<unsigned>(across); other += tile.across)
        if (threadIdx.x == 0) row[other] = {};
    const std::uint32_t underflow = __reduce_add_sync(0xFFFFFFFFu, g.underflow),
                        overflow = __reduce_add_sync(0xFFFFFFFFu, g.overflow);
    if (threadIdx.x % 32 != 0) return;
    if (underflow) atomicAdd(&target.state->underflow, static_cast<unsigned long long>(underflow));
    if (overflow) atomicAdd(&target.state->overflow, static_cast<unsigned long long>(overflow));
}

}  // namespace fp8lab::cuda
