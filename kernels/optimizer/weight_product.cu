// The weight gradient of a small batch inside the optimiser: the products of a tile stay in shared memory
// until its weights are updated. Bytes per weight as update_weights(), less the 4 + 4 of writing and reading
// dW.
#include "core/base/error.h"
#include "kernels/optimizer/optimizer.cuh"

namespace fp8lab::cuda {
namespace {

// A block's tile and what one of its 8 warps takes of it: 16 rows, in as many products of width 8 as remain.
template <int kRows>
struct Tile {
    static constexpr int kDown = kRows * kThreadsDown, kWarpRows = 16, kWarpsDown = kDown / kWarpRows,
                         kWarpCols = kTileCols * kWarpsDown * 32 / kThreads, kProducts = kWarpCols / 8;
    using Sums = float[kProducts][4];  // of each product rows g and g + 8, columns 2 t and 2 t + 1

    struct Place {
        int lane, g, t, row, col;  // row, col: of the warp's part in the tile
    };
    static __device__ Place place() {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        return {lane, lane / 4, lane % 4, warp % kWarpsDown * kWarpRows, warp / kWarpsDown * kWarpCols};
    }
};

// ---- BF16: k is the slow index of both operands; 32 rows of them at a time through shared memory, where
// ldmatrix transposes them.
struct Bf16Product {
    static constexpr int kDepth = 32, kPad = 8;  // 8: the 8 rows of a small matrix lie in different banks

    template <int kCols>
    using Stage = std::uint16_t[kDepth][kCols + kPad];

    template <int kCols>
    static __device__ void stage(std::uint16_t (&to)[kDepth][kCols + kPad], const void* from, int first,
                                 int batch, int col, int cols) {
        constexpr int kAcross = kCols / 8;
        for (int i = threadIdx.x; i < kDepth * kAcross; i += kThreads) {
            const int k = first + i / kAcross, c = col + i % kAcross * 8;
            uint4 words = make_uint4(0, 0, 0, 0);
            if (k < batch && c < cols)
                words = *reinterpret_cast<const uint4*>(static_cast<const std::uint16_t*>(from) +
                                                        static_cast<std::size_t>(k) * cols + c);
            *reinterpret_cast<uint4*>(&to[i / kAcross][i % kAcross * 8]) = words;
        }
    }
    static __device__ void load_transposed(const std::uint16_t* at, std::uint32_t (&out)[4]) {
        const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(at));
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                     : "r"(address));
    }

    template <class Tile>
    struct Staged {
        Stage<Tile::kDown> dy;
        Stage<kTileCols> x;
    };
    template <class Tile>
    static __device__ void multiply(const WeightProduct& p, int tile_r, int tile_c, int out, int in,
                                    void* shared, typename Tile::Sums& sums) {
        static_assert(sizeof(Staged<Tile>) <= sizeof(float) * Tile::kDown * kTileCols);  // of `shared`
        auto& [dy, x] = *static_cast<Staged<Tile>*>(shared);
        const auto [lane, g, t, row, col] = Tile::place();
        for (int first = 0; first < p.batch; first += kDepth) {
            if (first > 0) __syncthreads();
            stage<Tile::kDown>(dy, p.dy, first, p.batch, tile_r, out);
            stage<kTileCols>(x, p.x, first, p.batch, tile_c, in);
            __syncthreads();
#pragma unroll
            for (int k = 0; k < kDepth; k += 16) {
                std::uint32_t a[4];
                load_transposed(&dy[k + lane % 8 + lane / 16 * 8][row + lane / 8 % 2 * 8], a);
#pragma unroll
                for (int j = 0; j < Tile::kProducts; j += 2) {
                    std::uint32_t b[4];  // of products j and j + 1
                    load_transposed(&x[k + lane % 16][col + j * 8 + lane / 16 * 8], b);
#pragma unroll
                    for (int half = 0; half < 2; ++half) {
                        float(&d)[4] = sums[j + half];
                        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, "
                            "%6, %7}, "
                            "{%8, %9}, {%0, %1, %2, %3};"
                            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[2 * half]),
                              "r"(b[2 * half + 1]));
                    }
                }
            }
        }
    }
};

// ---- FP8: k is contiguous in both operands, so that a thread's four codes are one word in memory.
template <bool kE5m2>
struct Fp8Product {
    static __device__ std::uint32_t codes(const void* from, int row, int rows, int k, int batch) {
        if (row >= rows || k >= batch) return 0;
        return *reinterpret_cast<const std::uint32_t*>(static_cast<const std::uint8_t*>(from) +
                                                       static_cast<std::size_t>(row) * batch + k);
    }
    template <class Tile>
    static __device__ void multiply(const WeightProduct& p, int tile_r, int tile_c, int out, int in, void*,
                                    typename Tile::Sums& sums) {
        const auto [lane, g, t, row, col] = Tile::place();
        const int r = tile_r + row + g;
        for (int k = 4 * t; k < p.batch + 4 * t; k += 32) {
            const std::uint32_t a[4] = {codes(p.dy, r, out, k, p.batch), codes(p.dy, r + 8, out, k, p.batch),
                                        codes(p.dy, r, out, k + 16, p.batch),
                                        codes(p.dy, r + 8, out, k + 16, p.batch)};
#pragma unroll
            for (int j = 0; j < Tile::kProducts; ++j) {
                const int c = tile_c + col + j * 8 + g;
                const std::uint32_t b[2] = {codes(p.x, c, in, k, p.batch),
                                            codes(p.x, c, in, k + 16, p.batch)};
                float(&d)[4] = sums[j];
                if constexpr (kE5m2)
                    asm("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, "
                        "%7}, "
                        "{%8, %9}, {%0, %1, %2, %3};"
                        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
                else
                    asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, "
                        "%7}, "
                        "{%8, %9}, {%0, %1, %2, %3};"
                        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
            }
        }
        if (!p.by_column) {
            const float factor = *p.dy_scale_inv * *p.x_scale_inv;
#pragma unroll
            for (int j = 0; j < Tile::kProducts; ++j)
                for (float& d : sums[j]) d *= factor;
            return;
        }
        const auto of = [](const float* factors, int i, int count) { return i < count ? factors[i] : 1.0F; };
        const float of_row[2] = {of(p.dy_scale_inv, r, out), of(p.dy_scale_inv, r + 8, out)};
#pragma unroll
        for (int j = 0; j < Tile::kProducts; ++j) {
            const int c = tile_c + col + j * 8 + 2 * t;
            const float of_col[2] = {of(p.x_scale_inv, c, in), of(p.x_scale_inv, c + 1, in)};
#pragma unroll
            for (int d = 0; d < 4; ++d) sums[j][d] *= of_row[d / 2] * of_col[d % 2];
        }
    }
};

template <class Multiply, int kRows>
struct MultipliedGradient {
    struct Raw {};
    static constexpr int kAhead = 1;
    using Part = Tile<kRows>;
    static constexpr int kStride = kTileCols + 4;  // other banks for other rows, and float4s stay aligned
    WeightProduct product;
    int out, in;  // padded
    const float* tile = nullptr;
    __device__ void prepare() {
        __shared__ __align__(16) float gradient[Part::kDown * kStride];  // first of the operands
        typename Part::Sums sums = {};
        Multiply::template multiply<Part>(product, blockIdx.y * Part::kDown, blockIdx.x * kTileCols, out, in,
                                          gradient, sums);
        __syncthreads();
        const auto [lane, g, t, row, col] = Part::place();
#pragma unroll
        for (int j = 0; j < Part::kProducts; ++j) {
            float* const at = gradient + (row + g) * kStride + col + j * 8 + 2 * t;
            *reinterpret_cast<float2*>(at) = make_float2(sums[j][0], sums[j][1]);
            *reinterpret_cast<float2*>(at + 8 * kStride) = make_float2(sums[j][2], sums[j][3]);
        }
        __syncthreads();
        tile = gradient;
    }
    __device__ Raw fetch(int, int, Shape) const { return {}; }
    __device__ void values(Raw, int r, int c, Eight& v) const {
        load8(tile + r % Part::kDown * kStride + c % kTileCols, v);
    }
};

}  // namespace

// Of many tiles at work at once one's product hides behind another's memory; in BF16 tiles of half the height
// share the card more evenly. On one H200 (CUDA 13.0, 2026-11-21; 768-3072-768, B=32) a step in BF16
// takes 58.8 to 59.5 us so, 61.9 with tiles of a quarter, 60.7 with two rows fetched ahead; more where
// weights are fetched before the product, by registers (64.6) or cp.async (79). In FP8, whose second matrix
// is transposed, the lower tiles for the first made it 61.7 instead of 60.8.
template <class Multiply, int kRows>
constexpr int kRowsOf<Update<MultipliedGradient<Multiply, kRows>>> = kRows;
template <class Multiply, int kRows>
constexpr int kBlocksAtOnce<Update<MultipliedGradient<Multiply, kRows>, float>> = 3;

void update_weights(const UpdateSource& source, const WeightProduct& product, Shape shape,
                    const CastTarget& target, cudaStream_t stream) {
    const int out = shape.padded_rows, in = shape.padded_cols;
    const auto run = [&]<class Multiply>(Multiply) {
        using Tall = Update<MultipliedGradient<Multiply, kThreadRows>>;
        launch_cast(Tall{source, {product, out, in}}, shape, target, Pass::cast, stream);
    };
    switch (product.dy_element) {
        case Element::f32:
            throw Error(ErrorKind::backend, "weight product", "operands are BF16 or FP8");
        case Element::bf16:
            using Flat = Update<MultipliedGradient<Bf16Product, kFewRows>>;
            if (target.element == Element::bf16 && !target.stats_partials)  // those are counted by tall tiles
                return launch_tiles<Flat, ToBf16, Gather::plain>({source, {product, out, in}}, shape,
                                                                 tile_target(target), stream);
            return run(Bf16Product{});
        case Element::e4m3:
            return run(Fp8Product<false>{});
        case Element::e5m2:
            return run(Fp8Product<true>{});
    }
}

}  // namespace fp8lab::cuda
