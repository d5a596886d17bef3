// Attention of new positions to the cache, after FlashAttention-2 (Dao, arXiv 2307.08691): a block of threads has the rows of one
// head of K and V, which are pairs of a token and a head of Q that reads it, token first; it goes over the positions in steps of
// kStep with the running largest score and total of each row. Copies of the next steps are on their way meanwhile.
#pragma once

#include "kernels/prefill/steps.cuh"

namespace fp8lab::cuda {

template <class F>
class AttentionBlock : AttentionWork<F> {
    using Work = AttentionWork<F>;
    using Work::a_, Work::memory_, Work::group_, Work::first_row_, Work::length_, Work::warp_n_;
    using Work::first_, Work::end_, Work::every_, Work::kv_, Work::sequence_;
    using Work::lane, Work::warp_row, Work::row_of, Work::piece_at, Work::ask, Work::tiles;

  public:
    __device__ explicit AttentionBlock(const ServedAttention& a)
        : Work(a), factor_(kLog2E / sqrtf(static_cast<float>(a.head_size))) {
        if (F::kWidened) factor_ *= a.k_scales[kv_];
#pragma unroll
        for (int i = 0; i < F::kTiles; ++i)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                top_[i][h] = -INFINITY;
                total_[i][h] = 0;
            }
    }

    __device__ void run() {
        const int steps = max(0, (end_ - first_ + kStep - 1) / kStep);
#pragma unroll
        for (int i = 0; i < F::kStages - 1; ++i) ask(i, steps);
        this->load_q();
        for (int i = 0; i < steps; ++i) {
            wait_for_groups<F::kStages - 2>();
            __syncthreads();  // the step is there for all; nobody reads the one before
            ask(i + F::kStages - 1, steps);
            if constexpr (F::kWidened) {
                this->widen_stage(i % F::kStages);
                __syncthreads();
            }
            step(first_ + i * kStep, tiles(i));
        }
        if constexpr (F::kWarpsN == 1)
            finish();
        else
            finish_together();
    }

  private:
    static constexpr int kParts = F::kExact ? 2 : 1;  // of Q and the probabilities
    __device__ void step(int position, const std::byte* tiles) {
        float scores[F::kTiles][F::kColumns / 8][4] = {};
        multiply_q(tiles, scores);
        if (position + kStep > every_) hide(position, scores);
        to_probabilities(scores);
        add_values(tiles + F::kTileBytes, scores);
    }
    // Scores of positions behind a row's own and behind the range.
    __device__ void hide(int position, float (&scores)[F::kTiles][F::kColumns / 8][4]) const {
        const int at = position + warp_n_ * F::kColumns + lane() % 4 * 2;
#pragma unroll
        for (int i = 0; i < F::kTiles; ++i)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int last = min(length_ + row_of(i, h) / group_, end_ - 1) - at;
#pragma unroll
                for (int j = 0; j < F::kColumns / 8; ++j)
#pragma unroll
                    for (int e = 0; e < 2; ++e)
                        if (j * 8 + e > last) scores[i][j][2 * h + e] = -INFINITY;
            }
    }
    // The lane's row and piece of 16 rows from `first` on, of the pieces 0 and 1; pieces 2 d and 2 d + 1: at the address with
    // 32 d exclusive-ored into what is behind the row. high_rows: the bit of the matrix number that adds 8 to the row.
    static __device__ int place(int first, int high_rows) {
        const int matrix = lane() / 8, high = matrix >> high_rows & 1, odd = matrix >> (1 - high_rows) & 1;
        return piece_at(first + lane() % 8 + 8 * high, odd);
    }
    static __device__ int behind_row(int place, int d) {
        return (place & ~(F::kRowBytes - 1)) + ((place & (F::kRowBytes - 1)) ^ (d << 5));
    }
    __device__ void multiply_q(const std::byte* k, float (&scores)[F::kTiles][F::kColumns / 8][4]) const {
        const SharedAddress q_at = to_shared(memory_), k_at = to_shared(k);
        const int q_place = place(warp_row(0), 0), k_place = place(warp_n_ * F::kColumns, 1);
#pragma unroll
        for (int d = 0; d < F::kHead / 16; ++d) {
            std::uint32_t q[kParts][F::kTiles][4];
#pragma unroll
            for (int part = 0; part < kParts; ++part)
#pragma unroll
                for (int i = 0; i < F::kTiles; ++i)
                    load_fragments<false>(q[part][i], q_at + behind_row(q_place, d) + part * F::kPartBytes +
                                                          i * 16 * F::kRowBytes);
#pragma unroll
            for (int j = 0; j < F::kColumns / 16; ++j) {
                std::uint32_t b[4];
                load_fragments<false>(b, k_at + behind_row(k_place, d) + j * 16 * F::kRowBytes);
#pragma unroll
                for (int part = 0; part < kParts; ++part)
#pragma unroll
                    for (int i = 0; i < F::kTiles; ++i) {
                        add_product(scores[i][2 * j], q[part][i], b[0], b[1]);
                        add_product(scores[i][2 * j + 1], q[part][i], b[2], b[3]);
                    }
            }
        }
    }
    static __device__ void add_product(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                       std::uint32_t b1) {
        multiply_add<F::kOf>(c, a[0], a[1], a[2], a[3], b0, b1);
    }
    // exp2(scores - top) take the place of the scores; what was summed is brought to the new top, where a row of the warp has one.
    __device__ void to_probabilities(float (&scores)[F::kTiles][F::kColumns / 8][4]) {
#pragma unroll
        for (int i = 0; i < F::kTiles; ++i) {
            float old[2];
            bool higher = false;
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float top = top_[i][h];
#pragma unroll
                for (int j = 0; j < F::kColumns / 8; ++j)
                    top = fmaxf(top, fmaxf(scores[i][j][2 * h], scores[i][j][2 * h + 1]));
                top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
                top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
                // Of a row that has seen no position all of it stays 0.
                const float base = top == -INFINITY ? 0 : top, scaled = base * factor_;
                old[h] = fast_exp2((top_[i][h] - base) * factor_);
                higher = higher || top > top_[i][h];
                top_[i][h] = top;
                float sum = 0;
#pragma unroll
                for (int j = 0; j < F::kColumns / 8; ++j)
#pragma unroll
                    for (int e = 2 * h; e < 2 * h + 2; ++e) {
                        scores[i][j][e] = fast_exp2(fmaf(scores[i][j][e], factor_, -scaled));
                        sum += scores[i][j][e];
                    }
                total_[i][h] = fmaf(total_[i][h], old[h], sum);
            }
            if (!__any_sync(~0u, higher)) continue;
#pragma unroll
            for (int j = 0; j < F::kHead / 8; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e) sums_[i][j][e] *= old[e / 2];
        }
    }
    __device__ void add_values(const std::byte* v, const float (&p)[F::kTiles][F::kColumns / 8][4]) {
        const SharedAddress v_at = to_shared(v);
        const int v_place = place(warp_n_ * F::kColumns, 0);
#pragma unroll
        for (int j = 0; j < F::kColumns / 16; ++j) {
            std::uint32_t a[kParts][F::kTiles][4];
#pragma unroll
            for (int i = 0; i < F::kTiles; ++i)
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const float first = p[i][2 * j + e / 2][e % 2 * 2],
                                second = p[i][2 * j + e / 2][e % 2 * 2 + 1];
                    a[0][i][e] = F::pair(first, second);
                    if constexpr (F::kExact) a[1][i][e] = F::pair(F::rest(first), F::rest(second));
                }
#pragma unroll
            for (int d = 0; d < F::kHead / 16; ++d) {
                std::uint32_t b[4];
                load_fragments<true>(b, v_at + behind_row(v_place, d) + j * 16 * F::kRowBytes);
#pragma unroll
                for (int part = 0; part < kParts; ++part)
#pragma unroll
                    for (int i = 0; i < F::kTiles; ++i) {
                        add_product(sums_[i][2 * d], a[part][i], b[0], b[1]);
                        add_product(sums_[i][2 * d + 1], a[part][i], b[2], b[3]);
                    }
            }
        }
    }
    __device__ void add_up_totals() {
#pragma unroll
        for (int i = 0; i < F::kTiles; ++i)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                total_[i][h] += __shfl_xor_sync(~0u, total_[i][h], 1);
                total_[i][h] += __shfl_xor_sync(~0u, total_[i][h], 2);
            }
    }
    __device__ float v_scale() const { return F::kWidened ? a_.v_scales[kv_] : 1; }
    // Which head of all rows the result of a row is.
    __device__ std::size_t out_at(int row) const {
        return ((static_cast<std::size_t>(sequence_) * static_cast<std::size_t>(a_.tokens) +
                 static_cast<std::size_t>(row / group_)) *
                    static_cast<std::size_t>(a_.heads) +
                static_cast<std::size_t>(kv_ * group_ + row % group_));
    }

    // Each warp's rows, through its part of shared memory that held Q, so that they are stored in pieces of 16 bytes.
    __device__ void finish() {
        add_up_totals();
        const float v = v_scale();
#pragma unroll
        for (int i = 0; i < F::kTiles; ++i)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const float inverse = v / total_[i][h];
#pragma unroll
                for (int j = 0; j < F::kHead / 8; ++j)
                    *reinterpret_cast<std::uint32_t*>(
                        memory_ + piece_at(warp_row(i) + lane() / 4 + 8 * h, j) + lane() % 4 * 4) =
                        bf16_pair(sums_[i][j][2 * h] * inverse, sums_[i][j][2 * h + 1] * inverse);
            }
        __syncwarp();
        const int pieces = a_.head_size / 8;
        for (int n = lane(); n < 16 * F::kTiles * pieces; n += 32) {
            const int row = warp_row(0) + n / pieces, piece = n % pieces;
            if ((first_row_ + row) / group_ >= a_.tokens) break;
            *reinterpret_cast<uint4*>(static_cast<__nv_bfloat16*>(a_.out) +
                                      out_at(first_row_ + row) * static_cast<std::size_t>(a_.head_size) +
                                      piece * 8) =
                *reinterpret_cast<const uint4*>(memory_ + piece_at(row, piece));
        }
    }

    // The warps of a step have seen different positions: their results, in the order of the warps.
    __device__ void finish_together() {
        static_assert(F::kTiles == 1 && F::kWarpsM == 1);
        constexpr int kWidth = partial_width(F::kHead);
        static_assert(F::kWarpsN * F::kRows * kWidth * 4 <= F::kBytes - F::kQBytes);
        add_up_totals();
        wait_for_groups<0>();
        __syncthreads();  // nobody reads the last step
        float* const results = reinterpret_cast<float*>(memory_ + F::kQBytes);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            float* const to = results + (warp_n_ * F::kRows + lane() / 4 + 8 * h) * kWidth;
#pragma unroll
            for (int j = 0; j < F::kHead / 8; ++j)
                *reinterpret_cast<float2*>(to + j * 8 + lane() % 4 * 2) = {sums_[0][j][2 * h],
                                                                           sums_[0][j][2 * h + 1]};
            if (lane() % 4 == 0) *reinterpret_cast<float2*>(to + F::kHead) = {top_[0][h], total_[0][h]};
        }
        __syncthreads();
        const int hd = a_.head_size, rows = min(F::kRows, a_.tokens * group_ - first_row_);
        for (int n = static_cast<int>(threadIdx.x); n < rows * hd; n += F::kThreads)
            store_merged(n / hd, n % hd, results);
    }
    __device__ void store_merged(int row, int d, const float* results) const {
        constexpr int kWidth = partial_width(F::kHead);
        const auto result = [&](int w) { return results + (w * F::kRows + row) * kWidth; };
        float top = -INFINITY, total = 0, value = 0;
#pragma unroll
        for (int w = 0; w < F::kWarpsN; ++w) top = fmaxf(top, result(w)[F::kHead]);
#pragma unroll
        for (int w = 0; w < F::kWarpsN; ++w) {
            if (result(w)[F::kHead + 1] == 0) continue;
            const float old = fast_exp2((result(w)[F::kHead] - top) * factor_);
            total = fmaf(old, result(w)[F::kHead + 1], total);
            value = fmaf(old, result(w)[d], value);
        }
        value *= v_scale();
        const int hd = a_.head_size;
        const std::size_t at = out_at(first_row_ + row);
        if (a_.splits == 1) {
            static_cast<__nv_bfloat16*>(
                a_.out)[at * static_cast<std::size_t>(hd) + static_cast<std::size_t>(d)] =
                __float2bfloat16_rn(value / total);
            return;
        }
        float* const to = a_.partials + (at * static_cast<std::size_t>(a_.splits) + blockIdx.z) *
                                            static_cast<std::size_t>(partial_width(hd));
        to[d] = value;
        if (d == 0) to[hd] = top * factor_, to[hd + 1] = total;
    }

    float factor_, top_[F::kTiles][2], total_[F::kTiles][2];
    float sums_[F::kTiles][F::kHead / 8][4] = {};
};

template <class F>
__global__ void __launch_bounds__(F::kThreads, 2)
    served_attention_kernel(const __grid_constant__ ServedAttention a) {
    wait_for_the_kernel_before();
    AttentionBlock<F>(a).run();
}

}  // namespace fp8lab::cuda
