// Attention of one position to all of the cache, by the tensor cores. Blocks of threads take units: one sequence, one head of K
// and V, up to 4 heads of Q that read it, and a range of positions. The last block of threads that finishes a range of a head adds
// up what all ranges of it gave, in their order.
//
// Columns of the products: 4 heads of Q, and the same once more with what rounding to 16 bits left of Q or of the probabilities,
// so that sums are as of numbers with 16 bits of mantissa or more.
#pragma once

#include "kernels/infer/attention_units.cuh"

namespace fp8lab::cuda {

// ---- eight numbers of the cache side by side, as words of BF16 or, from E4M3, of FP16
template <class T>
struct CachePiece {
    uint4 words;
    static constexpr Multiplied kOf = Multiplied::bf16;
    __device__ static CachePiece of(const T* p) { return {__ldcg(reinterpret_cast<const uint4*>(p))}; }
    __device__ void unpack(std::uint32_t (&w)[4]) const {
        w[0] = words.x, w[1] = words.y, w[2] = words.z, w[3] = words.w;
    }
    __device__ static T cast(float v, float) { return __float2bfloat16_rn(v); }
    __device__ static std::uint32_t pair(float a, float b) { return bf16_pair(a, b); }
    __device__ static float rest(float v) { return v - __bfloat162float(__float2bfloat16_rn(v)); }
};
template <>
struct CachePiece<std::uint8_t> {
    uint2 words;
    static constexpr Multiplied kOf = Multiplied::f16;
    __device__ static CachePiece of(const std::uint8_t* p) {
        return {__ldcg(reinterpret_cast<const uint2*>(p))};
    }
    __device__ void unpack(std::uint32_t (&w)[4]) const {
        widen(words.x, w[0], w[1]);
        widen(words.y, w[2], w[3]);
    }
    __device__ static std::uint8_t cast(float v, float scale) {
        return static_cast<std::uint8_t>(fp8_quad<__NV_E4M3>(v * scale, 0, 0, 0));
    }
    __device__ static std::uint32_t pair(float a, float b) { return f16_pair(a, b); }
    __device__ static float rest(float v) { return v - __half2float(__float2half_rn(v)); }
};

// Element i of a head, rotated (RoPE over halves).
__device__ inline float rotated(const float* head, int i, int half) {
    const float* const angles = block().angles;
    const int low = i < half ? i : i - half;
    const float mine = __ldcg(head + i),
                other = __ldcg(head + (i < half ? i + half : low)) * angles[half + low];
    return mine * angles[low] + (i < half ? -other : other);
}

// K and V of this position into the cache, and Q of the unit into shared memory.
template <class T>
__device__ inline void append_and_rotate(const Unit& u, int position, int layer, const AttentionShared& s) {
    const DecodeModel& m = model();
    const int hd = m.head_size, half = hd / 2, at = static_cast<int>(threadIdx.x);
    const float* const now =
        m.qkv + static_cast<std::size_t>(u.token) * static_cast<std::size_t>((m.heads + 2 * m.kv_heads) * hd);
    const int scale_at = layer * m.kv_heads + u.kv;
    if (position >= u.first && position < u.end && at < hd) {
        const float *const k = now + (m.heads + u.kv) * hd, *const v = k + m.kv_heads * hd;
        const std::size_t to = u.cache_at +
                               static_cast<std::size_t>(position) * static_cast<std::size_t>(hd) +
                               static_cast<std::size_t>(at);
        static_cast<T*>(m.k)[to] =
            CachePiece<T>::cast(rotated(k, at, half), 1 / __ldg(m.k_scales + scale_at));
        static_cast<T*>(m.v)[to] = CachePiece<T>::cast(__ldcg(v + at), 1 / __ldg(m.v_scales + scale_at));
    }
    for (int i = at * 2; i < kUnitHeads * hd; i += kDecodeThreads * 2) {
        const int head = i / hd, j = i % hd;
        float a = 0, b = 0;
        if (head < u.heads) {
            a = rotated(now + (u.head + head) * hd, j, half);
            b = rotated(now + (u.head + head) * hd, j + 1, half);
        }
        *reinterpret_cast<std::uint32_t*>(s.q + head * s.q_stride + j * 2) = CachePiece<T>::pair(a, b);
        *reinterpret_cast<std::uint32_t*>(s.q + (head + kUnitHeads) * s.q_stride + j * 2) =
            CachePiece<T>::pair(CachePiece<T>::rest(a), CachePiece<T>::rest(b));
    }
    __syncthreads();
}

// 16 positions of K from `at` on, as the lanes hold them: rows lane / 4 and + 8. Zeros from `end` on.
template <class T, int kBlocks>
struct HeldKeys {
    CachePiece<T> low[kBlocks], high[kBlocks];
    __device__ void read(const T* k_head, int at, int end, int hd) {
        const int row = lane_number() / 4, quarter = lane_number() % 4;
        const T* const from =
            k_head + static_cast<std::size_t>(at + row) * static_cast<std::size_t>(hd) + quarter * 8;
#pragma unroll
        for (int j = 0; j < kBlocks; ++j) {
            const bool in = j * 32 + quarter * 8 < hd;
            low[j] = at + row < end && in ? CachePiece<T>::of(from + j * 32) : CachePiece<T>{};
            high[j] = at + row + 8 < end && in ? CachePiece<T>::of(from + 8 * hd + j * 32) : CachePiece<T>{};
        }
    }
};
// Scores as powers of 2.
template <class T, int kBlocks>
__device__ inline void scores_of(const HeldKeys<T, kBlocks>& k, int at, int end, int hd,
                                 const AttentionShared& s, float factor, float (&c)[4]) {
    const int row = lane_number() / 4, quarter = lane_number() % 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) c[i] = 0;
#pragma unroll
    for (int j = 0; j < kBlocks; ++j) {
        std::uint32_t a[4], b[4];
        k.low[j].unpack(a);
        k.high[j].unpack(b);
        const bool in = j * 32 + quarter * 8 < hd;
        const uint4 q = in ? read16(s.q + row * s.q_stride + (j * 32 + quarter * 8) * 2) : uint4{0, 0, 0, 0};
        multiply_add<CachePiece<T>::kOf>(c, a[0], b[0], a[1], b[1], q.x, q.y);
        multiply_add<CachePiece<T>::kOf>(c, a[2], b[2], a[3], b[3], q.z, q.w);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        c[i] = (c[i] + __shfl_xor_sync(~0u, c[i], 2)) * factor;
        if (at + row + i / 2 * 8 >= end) c[i] = -INFINITY;
    }
}

// exp2(scores - top), which take the place of the scores, and the sums so far brought to the new top.
template <int kChunks>
__device__ inline void to_probabilities(Softmax<kChunks>& so_far, float (&c)[4]) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float top = fmaxf(c[h], c[h + 2]);
#pragma unroll
        for (int s = 4; s < 32; s *= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, s));
        top = fmaxf(top, so_far.top[h]);  // finite: a step has a position
        const float old = fast_exp2(so_far.top[h] - top);
        so_far.top[h] = top;
        c[h] = fast_exp2(c[h] - top);
        c[h + 2] = fast_exp2(c[h + 2] - top);
        so_far.total[h] = fmaf(so_far.total[h], old, c[h] + c[h + 2]);
#pragma unroll
        for (int chunk = 0; chunk < kChunks; ++chunk)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                so_far.sums[chunk][i][h] *= old;
                so_far.sums[chunk][i][h + 2] *= old;
            }
    }
}

// 16 positions of V from `at` on: 2 (lane % 4) + i % 2 + i / 2 * 8, dimensions 8 (lane / 4) and on of each 64.
template <class T, int kChunks>
struct HeldValues {
    CachePiece<T> v[kChunks][4];
    __device__ void read(const T* v_head, int at, int end, int hd) {
        const int row = lane_number() / 4, quarter = lane_number() % 4;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int position = at + 2 * quarter + i % 2 + i / 2 * 8;
#pragma unroll
            for (int chunk = 0; chunk < kChunks; ++chunk) {
                const int d = chunk * 64 + row * 8;
                v[chunk][i] =
                    position < end && d < hd
                        ? CachePiece<T>::of(
                              v_head + static_cast<std::size_t>(position) * static_cast<std::size_t>(hd) + d)
                        : CachePiece<T>{};
            }
        }
    }
};
// sums += V^T probabilities. mine: this warp's (16, 4) floats of shared memory.
template <class T, int kChunks>
__device__ inline void add_values(const HeldValues<T, kChunks>& values, float* mine, const float (&p)[4],
                                  Softmax<kChunks>& so_far) {
    const int lane = lane_number(), row = lane / 4, quarter = lane % 4;
    if (quarter < 2) {  // (16, 4)
        *reinterpret_cast<float2*>(mine + row * kUnitHeads + 2 * quarter) = {p[0], p[1]};
        *reinterpret_cast<float2*>(mine + (row + 8) * kUnitHeads + 2 * quarter) = {p[2], p[3]};
    }
    __syncwarp();
    float f[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        f[i] = mine[(2 * quarter + i % 2 + i / 2 * 8) * kUnitHeads + row % kUnitHeads];
        if (row >= kUnitHeads) f[i] = CachePiece<T>::rest(f[i]);
    }
    __syncwarp();
    const std::uint32_t b0 = CachePiece<T>::pair(f[0], f[1]), b1 = CachePiece<T>::pair(f[2], f[3]);
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
        std::uint32_t w[4][4];
#pragma unroll
        for (int i = 0; i < 4; ++i) values.v[chunk][i].unpack(w[i]);
#pragma unroll
        for (int i = 0; i < 4; ++i)
            multiply_add<CachePiece<T>::kOf>(so_far.sums[chunk][i], __byte_perm(w[0][i], w[1][i], 0x5410),
                                             __byte_perm(w[0][i], w[1][i], 0x7632),
                                             __byte_perm(w[2][i], w[3][i], 0x5410),
                                             __byte_perm(w[2][i], w[3][i], 0x7632), b0, b1);
    }
}

// `times`: of the barrier behind which Q, K and V of this position are there. What was cached before is read while it is waited
// for.
template <class T, int kBlocks>
__device__ inline void attend(int layer, int times) {
    constexpr int kChunks = (kBlocks + 1) / 2;
    const DecodeModel& m = model();
    const AttentionShared s;
    const Units units;
    const int hd = m.head_size, stride = kDecodeWarps * kStepPositions, now = units.length - 1;
    const float factor = 1.44269504F / sqrtf(static_cast<float>(hd));
    float* const mine = s.probabilities + warp_number() * kStepPositions * kUnitHeads;
    for (int number = block_number(); number < max(units.count(), block_number() + 1);
         number += block_count()) {
        if (number >= units.count()) {
            wait_for_blocks(times);
            return;
        }
        const Unit u(units, layer, number);
        const T *const k_head = static_cast<const T*>(m.k) + u.cache_at, *const v_head =
                                                                             static_cast<const T*>(m.v) +
                                                                             u.cache_at;
        const float k_scale = __ldg(m.k_scales + layer * m.kv_heads + u.kv),
                    v_scale = __ldg(m.v_scales + layer * m.kv_heads + u.kv);
        int at = u.first + warp_number() * kStepPositions;
        HeldKeys<T, kBlocks> k;
        HeldValues<T, kChunks> v;
        k.read(k_head, at, min(u.end, now), hd);
        v.read(v_head, at, min(u.end, now), hd);
        if (number == block_number()) wait_for_blocks(times);
        append_and_rotate<T>(u, now, layer, s);
        if (at <= now && now < min(u.end, at + kStepPositions)) {
            k.read(k_head, at, u.end, hd);
            v.read(v_head, at, u.end, hd);
        }
        Softmax<kChunks> so_far;
        for (; at < u.end; at += stride) {
            float c[4];
            scores_of<T, kBlocks>(k, at, u.end, hd, s, factor * k_scale, c);
            if (at + stride < u.end) k.read(k_head, at + stride, u.end, hd);
            to_probabilities(so_far, c);
            add_values<T, kChunks>(v, mine, c, so_far);
            if (at + stride < u.end) v.read(v_head, at + stride, u.end, hd);
        }
        leave_results(so_far, hd, s);
        __syncthreads();
        finish_unit(units, u, v_scale, s);
        __syncthreads();
    }
}

}  // namespace fp8lab::cuda
