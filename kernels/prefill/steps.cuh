// How a block of threads of attention (attention.cuh) is made up, and what it brings into shared memory: Q, and steps of K and V.
#pragma once

#include "kernels/layers/parts.cuh"
#include "kernels/prefill/fragments.cuh"
#include "kernels/prefill/launch.h"

namespace fp8lab::cuda {

constexpr int kStep = 64;  // positions

// Of E: the element of the cache; kHead: the width of a head, rounded up. kWarpsN warps share the positions of a step. Of Q, the
// element of qkv: where it is FP32, what rounding leaves of Q and of the probabilities is multiplied too, so that they have 16 bits
// of mantissa or more.
template <class E, class Q, int kHeadOf, int kWarpsOfRows, int kWarpsOfStep, int kTilesOfWarp, int kStagesOf>
struct AttentionForm {
    using T = E;
    using In = Q;
    static constexpr int kHead = kHeadOf, kWarpsM = kWarpsOfRows, kWarpsN = kWarpsOfStep,
                         kTiles = kTilesOfWarp,  // of 16 rows
        kStages = kStagesOf, kThreads = 32 * kWarpsM * kWarpsN, kRows = 16 * kTiles * kWarpsM,
                         kColumns = kStep / kWarpsN,  // positions of a warp
        kRowBytes = 2 * kHead, kTileBytes = kStep * kRowBytes;
    static constexpr bool kExact = sizeof(In) == 4,
                          kWidened = sizeof(T) == 1;      // from codes to FP16, behind the stages
    static constexpr int kPartBytes = kRows * kRowBytes,  // Q, and behind it its rests
        kQBytes = kPartBytes * (kExact ? 2 : 1),
                         kStageBytes = 2 * kStep * kHead * static_cast<int>(sizeof(T)),
                         kBytes = kQBytes + kStages * kStageBytes + (kWidened ? 2 * kTileBytes : 0);
    static constexpr Multiplied kOf = kWidened ? Multiplied::f16 : Multiplied::bf16;
    static __device__ std::uint32_t pair(float a, float b) {
        if constexpr (kWidened)
            return f16_pair(a, b);
        else
            return bf16_pair(a, b);
    }
    static __device__ float rest(float v) {
        if constexpr (kWidened)
            return v - __half2float(__float2half_rn(v));
        else
            return v - __bfloat162float(__float2bfloat16_rn(v));
    }
};
template <class T, class Q, int kHead>
using ManyRows = AttentionForm<T, Q, kHead, 4, 1, sizeof(Q) == 4 ? 1 : 2, 2>;
template <class T, class Q, int kHead>
using FewRows = AttentionForm<T, Q, kHead, 1, 4, 1, 3>;

// Which rows and positions a block has, and their copies.
template <class F>
class AttentionWork {
  public:
    __device__ explicit AttentionWork(const ServedAttention& a)
        : a_(a),
          memory_(dynamic_shared_memory()),
          group_(a.heads / a.kv_heads),
          sequence_(static_cast<int>(blockIdx.x) / a.kv_heads),
          kv_(static_cast<int>(blockIdx.x) % a.kv_heads),
          first_row_(static_cast<int>(gridDim.y - 1 - blockIdx.y) * F::kRows),  // the longest first
          length_(*a.length),
          warp_m_(warp() % F::kWarpsM),
          warp_n_(warp() / F::kWarpsM) {
        const int last_token = min(a.tokens - 1, (first_row_ + F::kRows - 1) / group_),
                  all = min(length_ + last_token + 1, a.capacity);
        const int steps = (all + kStep - 1) / kStep, each = (steps + a.splits - 1) / a.splits * kStep;
        first_ = static_cast<int>(blockIdx.z) * each;
        end_ = min(all, first_ + each);
        every_ = min(length_ + first_row_ / group_ + 1, end_);
        const std::size_t head = static_cast<std::size_t>(sequence_ * a.kv_heads + kv_) *
                                 static_cast<std::size_t>(a.capacity) * static_cast<std::size_t>(a.head_size);
        k_ = reinterpret_cast<const std::byte*>(static_cast<const typename F::T*>(a.k) + head);
        v_ = reinterpret_cast<const std::byte*>(static_cast<const typename F::T*>(a.v) + head);
    }

  protected:
    static __device__ int warp() { return static_cast<int>(threadIdx.x) / 32; }
    static __device__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
    __device__ int warp_row(int tile) const { return (warp_m_ * F::kTiles + tile) * 16; }
    __device__ int row_of(int tile, int high) const {
        return first_row_ + warp_row(tile) + lane() / 4 + 8 * high;
    }
    // A piece of 16 bytes of a row of 16-bit numbers; the order within a row keeps 8 rows apart in the banks.
    static __device__ int piece_at(int row, int piece) {
        return row * F::kRowBytes + ((piece ^ (row & 7)) << 4);
    }
    __device__ std::byte* stage(int number) const { return memory_ + F::kQBytes + number * F::kStageBytes; }
    // K of step i as 16-bit numbers, V behind it.
    __device__ const std::byte* tiles(int i) const {
        return F::kWidened ? stage(F::kStages) : stage(i % F::kStages);
    }
    // Where the head of a row begins in qkv; behind the last token: not at all.
    __device__ bool has_token(int row) const { return row / group_ < a_.tokens; }
    __device__ std::size_t q_at(int row) const {
        return (static_cast<std::size_t>(sequence_) * static_cast<std::size_t>(a_.tokens) +
                static_cast<std::size_t>(row / group_)) *
                   static_cast<std::size_t>((a_.heads + 2 * a_.kv_heads) * a_.head_size) +
               static_cast<std::size_t>((kv_ * group_ + row % group_) * a_.head_size);
    }
    __device__ void fetch_q(std::size_t at, Eight& v) const {
        unpack(fetch8(static_cast<const typename F::In*>(a_.qkv) + at), v);
    }

    // Copies of K and V of step i. A thread has the same piece of every kRowsAtOnce-th row, whose places are as far from each
    // other as the rows.
    __device__ void ask(int i, int steps) const {
        if (i < steps) {
            constexpr int kPieces = F::kHead * static_cast<int>(sizeof(typename F::T)) / 16,
                          kRowsAtOnce = F::kThreads / kPieces, kEach = kStep / kRowsAtOnce;
            static_assert(kRowsAtOnce % 8 == 0);
            const int row_bytes = a_.head_size * static_cast<int>(sizeof(typename F::T)),
                      row = static_cast<int>(threadIdx.x) / kPieces,
                      piece = static_cast<int>(threadIdx.x) % kPieces,
                      left = piece * 16 < row_bytes ? end_ - first_ - i * kStep - row : 0;
            const std::size_t from =
                static_cast<std::size_t>(first_ + i * kStep + row) * static_cast<std::size_t>(row_bytes) +
                static_cast<std::size_t>(piece * 16);
            const std::byte *const k = left > 0 ? k_ + from : k_, *const v = left > 0 ? v_ + from : v_;
            const SharedAddress to =
                to_shared(stage(i % F::kStages)) +
                (F::kWidened ? static_cast<int>(threadIdx.x) * 16 : piece_at(row, piece));
#pragma unroll
            for (int j = 0; j < kEach; ++j) {
                const bool real = j * kRowsAtOnce < left;
                const int further = real ? j * kRowsAtOnce * row_bytes : 0,
                          at = j * kRowsAtOnce * (F::kWidened ? kPieces * 16 : F::kRowBytes);
                copy_piece(to + at, k + further, real);
                copy_piece(to + F::kStageBytes / 2 + at, v + further, real);
            }
        }
        end_group();
    }
    __device__ void widen_stage(int number) const {
        constexpr int kPieces = F::kHead / 16, kEach = 2 * kStep * kPieces / F::kThreads;
#pragma unroll
        for (int j = 0; j < kEach; ++j) {
            const int n = static_cast<int>(threadIdx.x) + j * F::kThreads, row = n / kPieces % kStep,
                      piece = n % kPieces, of = n / kPieces / kStep;
            const uint4 codes = *reinterpret_cast<const uint4*>(stage(number) + n * 16);
            uint4 low, high;
            widen(codes.x, low.x, low.y);
            widen(codes.y, low.z, low.w);
            widen(codes.z, high.x, high.y);
            widen(codes.w, high.z, high.w);
            std::byte* const to = stage(F::kStages) + of * F::kTileBytes;
            *reinterpret_cast<uint4*>(to + piece_at(row, 2 * piece)) = low;
            *reinterpret_cast<uint4*>(to + piece_at(row, 2 * piece + 1)) = high;
        }
    }

    // Q, rotated, into shared memory.
    __device__ void load_q() const {
        constexpr int kPieces = F::kHead / 8;
        const int half = a_.head_size / 2, used = half / 8;
        for (int n = static_cast<int>(threadIdx.x); n < F::kRows * kPieces / 2; n += F::kThreads) {
            const int row = n / (kPieces / 2), piece = n % (kPieces / 2);
            Eight low = {}, high = {};
            const bool real = has_token(first_row_ + row) && piece < used;
            if (real) {
                const std::size_t q = q_at(first_row_ + row) + static_cast<std::size_t>(piece * 8);
                fetch_q(q, low);
                fetch_q(q + static_cast<std::size_t>(half), high);
                Eight cos, sin;
                const int position = min(length_ + (first_row_ + row) / group_, a_.capacity - 1);
                const std::size_t angle =
                    static_cast<std::size_t>(position) * static_cast<std::size_t>(half) +
                    static_cast<std::size_t>(piece * 8);
                load8(a_.cos + angle, cos);
                load8(a_.sin + angle, sin);
#pragma unroll
                for (int j = 0; j < 8; ++j) {
                    const float l = low[j], h = high[j];
                    low[j] = l * cos[j] - h * sin[j];
                    high[j] = h * cos[j] + l * sin[j];
                }
            }
            // Pieces behind the head are zeros.
            const bool behind = piece >= used;
            put_q(row, behind ? 2 * piece : piece, low);
            put_q(row, behind ? 2 * piece + 1 : used + piece, high);
        }
    }
    __device__ void put_q(int row, int piece, const Eight& v) const {
        const auto put = [&](std::byte* to, const Eight& of) {
            *reinterpret_cast<uint4*>(to + piece_at(row, piece)) = {
                F::pair(of[0], of[1]), F::pair(of[2], of[3]), F::pair(of[4], of[5]), F::pair(of[6], of[7])};
        };
        put(memory_, v);
        if constexpr (F::kExact) {
            Eight rests;
#pragma unroll
            for (int j = 0; j < 8; ++j) rests[j] = F::rest(v[j]);
            put(memory_ + F::kPartBytes, rests);
        }
    }

    const ServedAttention& a_;
    std::byte* const memory_;
    const int group_, sequence_, kv_, first_row_, length_, warp_m_, warp_n_;
    int first_, end_, every_;  // positions; those before every_ are seen by every row
    const std::byte *k_, *v_;
};

}  // namespace fp8lab::cuda
