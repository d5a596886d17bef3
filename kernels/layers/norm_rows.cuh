// Rows of a norm in the registers of teams of threads, and the casts of what such a kernel writes.
#pragma once

#include "kernels/casts/tile_pieces.cuh"
#include "kernels/layers/parts.cuh"

namespace fp8lab::cuda {

// ---- a team: kThreads threads of a block, a warp or more, work on a row; each has kEights times 8 elements of it.
template <int kThreadsOfTeam, int kEightsOfThread, int kThreadsOfBlock = 256>
struct Team {
    static constexpr int kThreads = kThreadsOfTeam, kEights = kEightsOfThread, kBlock = kThreadsOfBlock,
                         kTeams = kBlock / kThreads, kWidest = kThreads * kEights * kThreadCols;
    static __device__ int number() { return static_cast<int>(threadIdx.x) / kThreads; }
    static __device__ int column(int k) {
        return (k * kThreads + static_cast<int>(threadIdx.x) % kThreads) * kThreadCols;
    }
};

// The sum over the team, in a fixed order, for all of its threads. All threads of the block take part. `slots`: one for
// each of the block's warps; those of one call may be used again two calls later.
template <class Team>
__device__ inline float team_sum(float value, float* slots) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xFFFFFFFFu, value, offset);
    if constexpr (Team::kThreads == 32) {
        return value;
    } else {
        constexpr int kWarps = Team::kThreads / 32;
        if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = value;
        __syncthreads();
        const float* const mine = slots + Team::number() * kWarps;
        float total = 0;
#pragma unroll
        for (int w = 0; w < kWarps; ++w) total += mine[w];
        return total;
    }
}

// run.template operator()<T, Team>() for rows of `cols` elements in the type `element`.
template <class Run>
void with_team(Element element, int cols, Run run) {
    using Bf16 = __nv_bfloat16;
    if (element == Element::f32) {  // of emulated recipes: fewer kernels
        if (cols <= Team<32, 2>::kWidest) return run.template operator()<float, Team<32, 2>>();
        if (cols <= Team<512, 2, 512>::kWidest) return run.template operator()<float, Team<512, 2, 512>>();
        return run.template operator()<float, Team<512, 4, 512>>();
    }
    if (cols <= Team<32, 1>::kWidest) return run.template operator()<Bf16, Team<32, 1>>();
    if (cols <= Team<32, 2>::kWidest) return run.template operator()<Bf16, Team<32, 2>>();
    if (cols <= Team<32, 3>::kWidest) return run.template operator()<Bf16, Team<32, 3>>();
    if (cols <= Team<32, 4>::kWidest) return run.template operator()<Bf16, Team<32, 4>>();
    if (cols <= Team<128, 2>::kWidest) return run.template operator()<Bf16, Team<128, 2>>();
    if (cols <= Team<256, 2>::kWidest) return run.template operator()<Bf16, Team<256, 2>>();
    if (cols <= Team<512, 2, 512>::kWidest) return run.template operator()<Bf16, Team<512, 2, 512>>();
    run.template operator()<Bf16, Team<512, 4, 512>>();
}

// ---- the cast
struct NotCast {
    static constexpr int kWords = 1;
    __device__ NotCast() {}
    __device__ NotCast(const TileTarget&, Shape, const std::uint32_t*) {}
};
template <class Out>
constexpr bool kCasts = !std::is_same_v<Out, NotCast>;
template <class Out>
constexpr bool kToFp8 = kCasts<Out> && !std::is_same_v<Out, ToBf16>;

// What casts leave in the state: the amax and the scale that was used.
class NormCast {
  public:
    __device__ NormCast(const TileTarget& target, Shape s)
        : target_(target),
          s_(s),
          scale_(target.scaled ? target.state->scale : 1.0F),
          seen_(target.state->amax_bits) {}
    __device__ void finish() {
        max_amax(target_.state, seen_, gathered_.amax);
        if (blockIdx.x != 0 || threadIdx.x != 0) return;
        target_.state->scale_used = scale_;
        *(target_.scale_inv ? target_.scale_inv : &target_.state->scale_inv) = 1 / scale_;
    }

  protected:
    template <class Out>
    __device__ uint2 cast_eight(const Eight& v, int r, int c) {
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) gathered_.amax = larger(gathered_.amax, v[j]);
        return cast_row<Out, false>(v, scale_, r < s_.padded_rows ? target_.rows : nullptr,
                                    static_cast<std::size_t>(r) * s_.padded_cols + c, gathered_);
    }
    const TileTarget& target_;
    const Shape s_;
    const float scale_;
    const std::uint32_t seen_;
    Gathered gathered_;
};

// Rows in BF16.
class RowCast : public NormCast {
  public:
    static constexpr int kWords = 1;
    __device__ RowCast(const TileTarget& target, Shape s, const std::uint32_t*) : NormCast(target, s) {}
    __device__ void add(const Eight& v, int first, int row, int c) { cast_eight<ToBf16>(v, first + row, c); }
    __device__ void store_columns(int) {}
};

// A strip of kCastRows whole rows. Its codes wait in shared memory to be stored by columns, 32 bytes of a column at a
// time: a sector of the L2 cache.
template <class Out, int kWidest>
class StripCast : public NormCast {
  public:
    static constexpr int kWords = kCastRows * kWidest / 4;  // of shared memory
    __device__ StripCast(const TileTarget& target, Shape s, std::uint32_t* codes)
        : NormCast(target, s), codes_(codes) {}
    // 8 values of row `first + row`; of a padded row: zeros.
    __device__ void add(const Eight& v, int first, int row, int c) {
        *reinterpret_cast<uint2*>(codes_ + word(row, c / 4)) = cast_eight<Out>(v, first + row, c);
    }
    // When all threads have added the strip's rows. The next strip's may be added behind it.
    __device__ void store_columns(int first) {
        __syncthreads();
        constexpr int kPart = 16;  // rows, and the words that a half warp takes of them
        const int of_row = target_.columns ? s_.cols / 4 : 0;
        for (int i = static_cast<int>(threadIdx.x); i / (2 * kPart) * kPart < of_row;
             i += static_cast<int>(blockDim.x)) {
            const int at = i / (2 * kPart) * kPart + i % kPart, part = i / kPart % 2 * kPart,
                      r = first + part;
            if (at >= of_row || r >= s_.padded_rows) continue;
            std::uint32_t columns[4][4];  // 4 rows of 4 columns each
#pragma unroll
            for (int four = 0; four < 4; ++four) {
                std::uint32_t rows[4];
#pragma unroll
                for (int row = 0; row < 4; ++row) rows[row] = codes_[word(part + four * 4 + row, at)];
                transpose4(rows, columns[four]);
            }
            auto* const out = static_cast<std::uint8_t*>(target_.columns) +
                              static_cast<std::size_t>(at) * 4 * s_.padded_rows + r;
#pragma unroll
            for (int c = 0; c < 4; ++c)
                *reinterpret_cast<uint4*>(out + static_cast<std::size_t>(c) * s_.padded_rows) =
                    make_uint4(columns[0][c], columns[1][c], columns[2][c], columns[3][c]);
        }
        __syncthreads();
    }

  private:
    // Half a warp reads rows 0 to 15 of 16 words, the other half rows 16 to 31: of other banks.
    static __device__ int word(int row, int at) { return row * (kWidest / 4) + (at ^ (row & 16)); }

    std::uint32_t* const codes_;
};

template <class Out, int kWidest>
using CastOfNorm = std::conditional_t<kToFp8<Out>, StripCast<Out, kWidest>,
                                      std::conditional_t<kCasts<Out>, RowCast, NotCast>>;

}  // namespace fp8lab::cuda
