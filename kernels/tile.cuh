// The one mechanism of every cast: a block takes a tile of kTileRows x kTileCols elements, a thread 4 rows x
// 8 columns of it. The source yields FP32 values; they are cast, stored by rows, turned in shared memory and
// stored by columns, while amax, statistics and sums over columns are gathered.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <type_traits>

#include "kernels/device.h"
#include "kernels/eight.cuh"
#include "kernels/launch.h"
#include "kernels/launching.cuh"

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
    static __device__ float back(std::uint32_t code) { return __uint_as_float(code << 16); }
};
template <__nv_fp8_interpretation_t kKind>
struct ToFp8 {
    static constexpr int kBytes = 1;
    static __device__ bool overflows(float x) {  // what saturation changes: numerics 3.3
        return kKind == __NV_E4M3 ? fabsf(x) > 464.0F : fabsf(x) >= 61440.0F;
    }
    static __device__ std::uint32_t pair(float low, float high) {
        return __nv_cvt_float2_to_fp8x2(make_float2(low, high), __NV_SATFINITE, kKind);
    }
    static __device__ float back(std::uint32_t code) {
        return __half2float(__half(__nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(code), kKind)));
    }
};

struct TileTarget {
    void *rows, *columns;
    ScaleState* state;
    double2* stats;
    float* bias_partials;   // (tiles_down, padded_cols), of sources with kBiasSums
    double* loss_partials;  // one a block, of sources with kLoss
    bool scaled;
};

// Sum of a warp in a fixed order, valid in its first thread.
template <class T>
__device__ T warp_sum(T value) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xFFFFFFFFu, value, offset);
    return value;
}
// Of a block, valid in thread 0.
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

// |x| or the larger so far, as the bits of a non-negative float; NaN is larger than Inf.
__device__ inline float larger(float so_far, float x) {
    float out;
    asm("{ .reg .f32 a; abs.f32 a, %2; max.NaN.f32 %0, %1, a; }" : "=f"(out) : "f"(so_far), "f"(x));
    return out;
}

// `seen`: the tensor's amax when the block began. Most warps of a large tensor have nothing larger to say and
// spare the atomic, and nobody waits for one.
__device__ inline void max_amax(ScaleState* state, std::uint32_t seen, float amax) {
    const std::uint32_t bits = __reduce_max_sync(0xFFFFFFFFu, __float_as_uint(amax));
    if (threadIdx.x % 32 == 0 && bits > seen) atomicMax(&state->amax_bits, bits);
}

// Column c of the tile holds its 64 bytes as 16 words, permuted so that neither side meets a bank twice.
__device__ inline int turned_word(int column, int word) {
    return column * kThreadsDown + (word ^ (column / kThreadCols % 16));
}

// 4 x 4 bytes: row i in rows[i] becomes column j in columns[j].
__device__ inline void turn4(const std::uint32_t (&rows)[4], std::uint32_t* columns) {
    const std::uint32_t a = __byte_perm(rows[0], rows[1], 0x5140), b = __byte_perm(rows[2], rows[3], 0x5140);
    const std::uint32_t c = __byte_perm(rows[0], rows[1], 0x7362), d = __byte_perm(rows[2], rows[3], 0x7362);
    columns[0] = __byte_perm(a, b, 0x5410);
    columns[1] = __byte_perm(a, b, 0x7632);
    columns[2] = __byte_perm(c, d, 0x5410);
    columns[3] = __byte_perm(c, d, 0x7632);
}

// Stores what 4 x 8 values a thread have become, through shared memory, by columns.
__device__ inline void store_columns(std::uint8_t* out, const std::uint32_t (&words)[kThreadCols], Shape s,
                                     int tile_r, int tile_c, std::uint32_t* turned) {
    const int tx = threadIdx.x % kThreadsAcross, ty = threadIdx.x / kThreadsAcross;
#pragma unroll
    for (int j = 0; j < kThreadCols; ++j) {
        // Neighbouring rows write neighbouring columns' words at a time: other banks.
        const int column = ty % 2 ? j ^ 1 : j;
        turned[turned_word(tx * kThreadCols + column, ty)] = ty % 2 ? words[j ^ 1] : words[j];
    }
    __syncthreads();
    // 4 threads a column, 16 bytes each.
#pragma unroll
    for (int pass = 0; pass < kTileCols * 4 / kThreads; ++pass) {
        const int item = pass * kThreads + static_cast<int>(threadIdx.x), column = item / 4, part = item % 4;
        const int c = tile_c + column, r = tile_r + part * 16;
        if (c >= s.padded_cols || r >= s.padded_rows) continue;
        const int f = column / kThreadCols % 16;
        uint4 v = *reinterpret_cast<const uint4*>(turned + column * kThreadsDown + ((part ^ (f / 4)) * 4));
        if (f & 1) v = make_uint4(v.y, v.x, v.w, v.z);
        if (f & 2) v = make_uint4(v.z, v.w, v.x, v.y);
        *reinterpret_cast<uint4*>(out + static_cast<std::size_t>(c) * s.padded_rows + r) = v;
    }
}

enum class Gather {
    plain,
    stats,
    amax_only,
    nothing
};  // beside the payload; nothing: FP32 copies without a state

// What a thread gathers while it casts.
struct Gathered {
    float amax = 0;
    std::uint32_t underflow = 0, overflow = 0;
    double signal = 0, noise = 0;
    Eight column = {};  // sums over the thread's rows
};

// What casting v to the codes in `pairs` did.
template <class Out>
__device__ inline void measure(const Eight& v, const std::uint32_t (&pairs)[4], float scale, float inverse,
                               Gathered& g) {
    constexpr int kBits = Out::kBytes * 8;
#pragma unroll
    for (int j = 0; j < kThreadCols; ++j) {
        const float q = Out::back((pairs[j / 2] >> (j % 2 * kBits)) & ((1u << kBits) - 1)) * inverse;
        g.underflow += v[j] != 0 && q == 0;
        g.overflow += Out::overflows(v[j] * scale);
        const auto kept = static_cast<double>(isfinite(v[j]) ? v[j] : 0.0F),
                   lost = static_cast<double>(isfinite(v[j]) ? v[j] - q : 0.0F);
        // Squares of floats are exact in FP64: fused or not, the sums are the same.
        g.signal = fma(kept, kept, g.signal);
        g.noise = fma(lost, lost, g.noise);
    }
}

// Casts 8 values and stores them at element `at` of `rows` (null: nowhere). FP8 comes back as well, four
// columns a word.
template <class Out, bool kStats>
__device__ inline uint2 cast_row(const Eight& v, float scale, float inverse, void* rows, std::size_t at,
                                 Gathered& g) {
    if constexpr (Out::kBytes == 4) {
        if (rows) store8(static_cast<float*>(rows) + at, v);
        return {};
    } else {
        std::uint32_t pairs[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) pairs[j] = Out::pair(v[2 * j] * scale, v[2 * j + 1] * scale);
        if constexpr (kStats) measure<Out>(v, pairs, scale, inverse, g);
        if constexpr (Out::kBytes == 2) {
            if (rows)
                *reinterpret_cast<uint4*>(static_cast<std::uint16_t*>(rows) + at) =
                    make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
            return {};
        } else {
            const uint2 words =
                make_uint2(__byte_perm(pairs[0], pairs[1], 0x5410), __byte_perm(pairs[2], pairs[3], 0x5410));
            if (rows) *reinterpret_cast<uint2*>(static_cast<std::uint8_t*>(rows) + at) = words;
            return words;
        }
    }
}

// Threads' sums over 4 rows, then over the 16 rows of threads, in order.
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

template <class Source, class Out, Gather kGather>
__global__ void __launch_bounds__(kThreads) tile_cast(Source source, Shape s, TileTarget target) {
    constexpr bool kHasStats = kGather == Gather::stats, kHasState = kGather != Gather::nothing,
                   kAmax = kGather == Gather::amax_only;
    __shared__ __align__(16) std::uint32_t turned[kTileCols * kThreadsDown];
    wait_for_the_kernel_before();
    const int tx = threadIdx.x % kThreadsAcross, ty = threadIdx.x / kThreadsAcross;
    const int tile_r = blockIdx.y * kTileRows, tile_c = blockIdx.x * kTileCols;
    const int r0 = tile_r + ty * kThreadRows, c = tile_c + tx * kThreadCols;
    const bool inside =
        c < s.padded_cols && r0 < s.padded_rows;  // padding is in 16s, a thread's part in 4s and 8s
    const float scale = kHasState && target.scaled && !kAmax ? target.state->scale : 1.0F;
    const float inverse = 1.0F / scale;
    const std::uint32_t seen = kHasState ? target.state->amax_bits : 0;
    const bool whole =
        tile_r + kTileRows <= s.rows && tile_c + kTileCols <= s.cols;  // of the block: no padding
    // Threads outside read what is inside, so that no branch stands between the loads.
    const int safe_c = inside ? c : 0;
    void* const rows = inside ? target.rows : nullptr;
    source.prepare(safe_c);
    Gathered g;
    std::uint32_t low[kThreadRows] = {}, high[kThreadRows] = {};  // FP8 only: columns 0-3 and 4-7 of a row
#pragma unroll
    for (int first = 0; first < kThreadRows; first += Source::kAhead) {
        typename Source::Raw raw[Source::kAhead];
#pragma unroll
        for (int i = 0; i < Source::kAhead; ++i)
            raw[i] = source.fetch(min(r0 + first + i, s.rows - 1), safe_c, s);
#pragma unroll
        for (int i = 0; i < Source::kAhead; ++i) {
            const int row = first + i;
            const bool real = whole || (inside && r0 + row < s.rows);
            Eight v;
            source.values(raw[i], r0 + row, c, real, s, v);
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) {
                if (!whole && (!real || c + j >= s.cols)) v[j] = 0;
                if constexpr (kHasState) g.amax = larger(g.amax, v[j]);
                if constexpr (Source::kBiasSums) g.column[j] += v[j];
            }
            if constexpr (!kAmax) {
                const std::size_t at = static_cast<std::size_t>(r0 + row) * s.padded_cols + c;
                const uint2 words = cast_row<Out, kHasStats>(v, scale, inverse, rows, at, g);
                low[row] = words.x, high[row] = words.y;
            }
        }
    }
    if constexpr (Out::kBytes == 1 && !kAmax) {
        if (target.columns) {
            std::uint32_t words[kThreadCols];
            turn4(low, words);
            turn4(high, words + 4);
            store_columns(static_cast<std::uint8_t*>(target.columns), words, s, tile_r, tile_c, turned);
        }
    }
    if constexpr (kHasState) max_amax(target.state, seen, g.amax);
    if (kHasState && !kAmax && blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) {
        target.state->scale_used = scale;
        target.state->scale_inv = inverse;
    }
    [[maybe_unused]] const int block = static_cast<int>(blockIdx.y * gridDim.x + blockIdx.x);
    if constexpr (Source::kBiasSums || Source::kLoss) {
        [[maybe_unused]] __shared__ double losses[kThreads / 32];
        if constexpr (Source::kLoss) {
            const double loss = warp_sum(source.loss);
            if (threadIdx.x % 32 == 0) losses[threadIdx.x / 32] = loss;
        }
        store_column_sums(
            target.bias_partials + static_cast<std::size_t>(blockIdx.y) * s.padded_cols + tile_c, g.column,
            s.padded_cols - tile_c, reinterpret_cast<float*>(turned));
        // The last warp has no column to add up.
        if (Source::kLoss && threadIdx.x == kThreads - 1) {
            double loss = 0;
#pragma unroll
            for (int w = 0; w < kThreads / 32; ++w) loss += losses[w];
            target.loss_partials[block] = loss;
        }
    }
    if constexpr (kHasStats) {
        __shared__ double shared[kThreads / 32];
        const double signal = block_sum(g.signal, shared), noise = block_sum(g.noise, shared);
        if (threadIdx.x == 0) target.stats[block] = make_double2(signal, noise);
        const std::uint32_t underflow = __reduce_add_sync(0xFFFFFFFFu, g.underflow),
                            overflow = __reduce_add_sync(0xFFFFFFFFu, g.overflow);
        if (threadIdx.x % 32 == 0) {
            if (underflow) atomicAdd(&target.state->underflow, static_cast<unsigned long long>(underflow));
            if (overflow) atomicAdd(&target.state->overflow, static_cast<unsigned long long>(overflow));
        }
    }
}

template <class Source, class Out, Gather kGather>
void launch_tiles(const Source& source, Shape s, const TileTarget& target, cudaStream_t stream) {
    const dim3 grid(static_cast<unsigned>(tiles_across(s)), static_cast<unsigned>(tiles_down(s)));
    launch("cast kernel", tile_cast<Source, Out, kGather>, grid, kThreads, stream, source, s, target);
}

template <class Source, class Out>
void launch_payload(const Source& source, Shape s, const TileTarget& target, cudaStream_t stream) {
    if (target.stats)
        launch_tiles<Source, Out, Gather::stats>(source, s, target, stream);
    else
        launch_tiles<Source, Out, Gather::plain>(source, s, target, stream);
}

template <class Source>
void launch_cast(const Source& source, Shape s, const CastTarget& to, Pass pass, cudaStream_t stream,
                 float* bias_partials = nullptr, double* loss_partials = nullptr) {
    const TileTarget target{to.rows,       to.columns,    to.state, to.stats_partials,
                            bias_partials, loss_partials, to.scaled};
    if (pass == Pass::amax_only)
        return launch_tiles<Source, ToBf16, Gather::amax_only>(source, s, target, stream);
    switch (to.element) {
        case Element::f32:
            return launch_tiles<Source, ToF32, Gather::nothing>(source, s, target, stream);
        case Element::bf16:
            return launch_payload<Source, ToBf16>(source, s, target, stream);
        case Element::e4m3:
            return launch_payload<Source, ToFp8<__NV_E4M3>>(source, s, target, stream);
        case Element::e5m2:
            return launch_payload<Source, ToFp8<__NV_E5M2>>(source, s, target, stream);
    }
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
