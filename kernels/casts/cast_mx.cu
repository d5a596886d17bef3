// The cast to MXFP8: one E8M0 scale for 32 elements of a row of the payload, in cuBLASLt's tiles of 128 x 4
// scales. 32 elements along either dimension are among those of a block of threads.
//
// Bytes per element: what is read + 1 + 1 + 1/16 of scales.
#include "kernels/casts/tile.cuh"

namespace fp8lab::cuda {
namespace {

constexpr int kMxGroups = kTileRows / kMxBlock;  // of 32 rows, in a tile
constexpr int kWarps = kThreads / 32, kWarpsPerGroup = kWarps / kMxGroups;
static_assert(kThreads == kMxGroups * kTileCols && kMxBlock == 4 * kThreadCols && kThreadRows == 4);

struct MxMemory {
    std::uint32_t transposed[kTileCols * kThreadsDown];
    float warps[kWarps][kTileCols];      // amaxes of columns, by warp: 8 rows each
    float scales[kMxGroups][kTileCols];  // of columns
};
struct MxScales {
    std::uint8_t *rows, *columns;  // null: of no interest
};

// core/scaling's rule `up`: amax / max, its exponent rounded up; NaN is 255.
__device__ std::uint8_t mx_code(float amax, float max_finite) {
    const float scale = amax / max_finite;
    if (isnan(scale)) return 255;
    const std::uint32_t pattern = __float_as_uint(scale);
    constexpr std::uint32_t kOne = 0x800000;  // below, the exponent field is 0: 2^-127 is half of it
    return static_cast<std::uint8_t>(min((pattern + (pattern < kOne ? kOne / 2 : kOne) - 1) >> 23, 254u));
}
// What values are multiplied by: 1 / 2^(code - 127), another power of two.
__device__ float mx_multiplier(int code) {
    return code == 255   ? __uint_as_float(0x7FC00000u)
           : code == 254 ? __uint_as_float(0x400000u)
                         : __uint_as_float(static_cast<std::uint32_t>(254 - code) << 23);
}

// Each of 4 neighbouring threads gets the largest value of row tx % 4 over all of them, NaN if there is one.
__device__ float amax_of_row(const float (&rows)[kThreadRows], int tx) {
    const auto other = [](float x, int lane) { return __shfl_xor_sync(0xFFFFFFFFu, x, lane); };
    const bool low = (tx & 2) == 0, even = (tx & 1) == 0;
    const float a = larger(low ? rows[0] : rows[2], other(low ? rows[2] : rows[0], 2)),
                b = larger(low ? rows[1] : rows[3], other(low ? rows[3] : rows[1], 2));
    return larger(even ? a : b, other(even ? b : a, 1));
}

// What a thread holds of a tile.
struct Part {
    int tile_r, tile_c, tx, ty;
    Eight v[kThreadRows];
    __device__ int row() const { return tile_r + ty * kThreadRows; }
    __device__ int column() const { return tile_c + tx * kThreadCols; }
    __device__ bool inside(Shape s) const { return column() < s.padded_cols && row() < s.padded_rows; }
};

template <class T>
__device__ void load(const T* in, Shape s, Part& part) {
    const bool inside = part.inside(s);
    const T* const from =
        in + static_cast<std::size_t>(inside ? part.row() : 0) * s.padded_cols + (inside ? part.column() : 0);
    Packed<T> raw[kThreadRows];
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i)
        raw[i] = fetch8(from + i * static_cast<std::ptrdiff_t>(s.padded_cols));
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i) unpack(raw[i], part.v[i]);
    if (part.tile_r + kTileRows <= s.rows && part.tile_c + kTileCols <= s.cols) return;
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i)
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j)
            if (part.row() + i >= s.rows || part.column() + j >= s.cols) part.v[i][j] = 0;
}

// The scale of row tx % 4 and the 32 columns that the thread shares with three others.
__device__ float scale_rows(const Part& part, Shape s, ScaleState* state, std::uint32_t seen,
                            float max_finite, std::uint8_t* out) {
    float rows[kThreadRows] = {}, amax = 0;
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i) {
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) rows[i] = larger(rows[i], part.v[i][j]);
        amax = larger(amax, rows[i]);
    }
    max_amax(state, seen, amax);
    const std::uint8_t code = mx_code(amax_of_row(rows, part.tx), max_finite);
    const int r = part.row() + part.tx % kThreadRows, c = part.column() / kMxBlock * kMxBlock;
    if (out && r < s.padded_rows && c < s.padded_cols) out[mx_scale_at(s.padded_cols, r, c)] = code;
    return mx_multiplier(code);
}

// scale_inv of the columns where it belongs, scale in shared memory.
__device__ void scale_columns(const Part& part, Shape s, float max_finite, std::uint8_t* out,
                              MxMemory& shared) {
    Eight most = {};
#pragma unroll
    for (int j = 0; j < kThreadCols; ++j) {
#pragma unroll
        for (int i = 0; i < kThreadRows; ++i) most[j] = larger(most[j], part.v[i][j]);
        most[j] = larger(most[j], __shfl_xor_sync(0xFFFFFFFFu, most[j], kThreadsAcross));
    }
    if (threadIdx.x % 32 < kThreadsAcross)
        store8(shared.warps[threadIdx.x / 32] + part.tx * kThreadCols, most);
    __syncthreads();
    const int group = static_cast<int>(threadIdx.x) / kTileCols,
              column = static_cast<int>(threadIdx.x) % kTileCols;
    float largest = 0;
#pragma unroll
    for (int w = 0; w < kWarpsPerGroup; ++w)
        largest = larger(largest, shared.warps[group * kWarpsPerGroup + w][column]);
    const std::uint8_t code = mx_code(largest, max_finite);
    shared.scales[group][column] = mx_multiplier(code);
    const int r = part.tile_r + group * kMxBlock, c = part.tile_c + column;
    if (out && c < s.padded_cols && r < s.padded_rows) out[mx_scale_at(s.padded_rows, c, r)] = code;
    __syncthreads();
}

template <class T, class Out, bool kStats>
__global__ void __launch_bounds__(kThreads) mx_cast(const T* in, Shape s, TileTarget target, MxScales to) {
    __shared__ __align__(16) MxMemory shared;
    wait_for_the_kernel_before();
    Part part{static_cast<int>(blockIdx.y) * kTileRows,
              static_cast<int>(blockIdx.x) * kTileCols,
              static_cast<int>(threadIdx.x) % kThreadsAcross,
              static_cast<int>(threadIdx.x) / kThreadsAcross,
              {}};
    const std::uint32_t seen = target.state->amax_bits;
    const float max_finite = target.state->max_finite;
    load(in, s, part);
    const float own = scale_rows(part, s, target.state, seen, max_finite, to.rows);
    scale_columns(part, s, max_finite, to.columns, shared);
    const int group = part.ty * kThreadRows / kMxBlock;
    Eight scales;
    load8(shared.scales[group] + part.tx * kThreadCols, scales);
    const bool stores = target.rows && part.inside(s);
    const std::size_t first = static_cast<std::size_t>(part.row()) * s.padded_cols + part.column();
    Gathered g;
    std::uint32_t low[kThreadRows], high[kThreadRows], words[kThreadCols];
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i) {
        const int keeper = static_cast<int>(threadIdx.x) % 32 / 4 * 4 + i;
        const float scale = __shfl_sync(0xFFFFFFFFu, own, keeper);
        if (!kStats || target.rows) {
            const uint2 codes = cast_row<Out, kStats>(part.v[i], scale, nullptr, 0, g);
            if (stores)
                *reinterpret_cast<uint2*>(static_cast<std::uint8_t*>(target.rows) + first +
                                          static_cast<std::size_t>(i) * s.padded_cols) = codes;
        }
        const uint2 row = cast_row<Out, false>(part.v[i], scales, nullptr, 0, g);
        if (kStats && !target.rows) measure<Out>(part.v[i], {row.x, row.y}, scales, g);
        low[i] = row.x, high[i] = row.y;
    }
    if (target.columns) {
        transpose4(low, words);
        transpose4(high, words + 4);
        store_columns(static_cast<std::uint8_t*>(target.columns), words, s, part.tile_r, part.tile_c,
                      shared.transposed);
    }
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0)
        target.state->scale_used = target.state->scale_inv = 1;
    if constexpr (kStats) store_stats(g, {blockIdx.x, blockIdx.y, gridDim.x}, tiles_across(s), target);
}

template <class T, class Out>
void run(const T* in, Shape s, const TileTarget& target, const MxScales& scales, cudaStream_t stream) {
    const dim3 grid(static_cast<unsigned>(tiles_across(s)), static_cast<unsigned>(tiles_down(s)));
    launch("cast kernel", target.stats ? mx_cast<T, Out, true> : mx_cast<T, Out, false>, grid, kThreads,
           stream, in, s, target, scales);
}

}  // namespace

void cast_matrix_to_mx(const void* in, Element in_element, Shape shape, const CastTarget& to,
                       cudaStream_t stream) {
    const TileTarget target{to.rows, to.columns, to.state, to.stats_partials, nullptr, nullptr, true};
    const MxScales scales{reinterpret_cast<std::uint8_t*>(to.vectors.rows),
                          reinterpret_cast<std::uint8_t*>(to.vectors.columns)};
    with_type(in_element, [&](auto* type) {
        using T = std::remove_cv_t<std::remove_pointer_t<decltype(type)>>;
        const T* const matrix = static_cast<const T*>(in);
        if (to.element == Element::e4m3)
            run<T, ToFp8<__NV_E4M3>>(matrix, shape, target, scales, stream);
        else
            run<T, ToFp8<__NV_E5M2>>(matrix, shape, target, scales, stream);
    });
}

}  // namespace fp8lab::cuda
