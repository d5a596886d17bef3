// How attention is shared among blocks of threads (attention.cuh), and how what its parts gave is added up.
#pragma once

#include "kernels/infer/inputs.cuh"

namespace fp8lab::cuda {

constexpr int kUnitColumns = 2 * kUnitHeads, kStepPositions = 16;

// How the work is shared: pairs of a sequence and some heads of Q that read one head of K, each in `splits` ranges.
struct Units {
    int groups, pairs, splits, per_split, length;
    __device__ Units() {
        const DecodeModel& m = model();
        length = *m.length + 1;
        groups = (m.heads / m.kv_heads + kUnitHeads - 1) / kUnitHeads;
        pairs = m.batch * m.kv_heads * groups;
        const int most = max(1, min(block_count() / pairs, (length + kStepPositions - 1) / kStepPositions));
        per_split = (length + most - 1) / most;
        splits = (length + per_split - 1) / per_split;
    }
    __device__ int count() const { return pairs * splits; }
};
struct Unit {
    int pair, split, first, end, token, kv, head, heads;  // heads of Q: head, head + 1 ...
    std::size_t cache_at;                                 // elements: of its head of K or V
    __device__ Unit(const Units& units, int layer, int number) {
        const DecodeModel& m = model();
        pair = number % units.pairs;
        split = number / units.pairs;
        first = split * units.per_split;
        end = min(units.length, first + units.per_split);
        const int of_kv = m.heads / m.kv_heads, group = pair % units.groups;
        kv = pair / units.groups % m.kv_heads;
        token = pair / units.groups / m.kv_heads;
        head = kv * of_kv + group * kUnitHeads;
        heads = min(kUnitHeads, of_kv - group * kUnitHeads);
        cache_at = ((static_cast<std::size_t>(layer) * static_cast<std::size_t>(m.batch) +
                     static_cast<std::size_t>(token)) *
                        static_cast<std::size_t>(m.kv_heads) +
                    static_cast<std::size_t>(kv)) *
                   static_cast<std::size_t>(m.capacity) * static_cast<std::size_t>(m.head_size);
    }
};

// Shared memory of attention, in place of x and the sums of products.
struct AttentionShared {
    float *probabilities, *results;  // of each warp (16, 4); of each warp and head: sums, top, total
    std::byte* q;                    // (8, head_size) of 16 bits
    int q_stride, width;
    __device__ AttentionShared() {
        const int head_size = model().head_size;
        q = shared_rest();
        q_stride = head_size * 2 + 16;
        probabilities = reinterpret_cast<float*>(q + kUnitColumns * q_stride);
        results = probabilities + kDecodeWarps * kStepPositions * kUnitHeads;
        width = head_size + 2;
    }
};

// A warp's softmax so far, of the two heads of this lane: 2 (lane % 2) and the next.
template <int kChunks>
struct Softmax {
    float top[2] = {-INFINITY, -INFINITY}, total[2] = {};
    float sums[kChunks][4][4] = {};  // of 64 dimensions, by 16: rows of V^T, columns of the products
};

// A warp's part of a unit into shared memory.
template <int kChunks>
__device__ inline void leave_results(Softmax<kChunks>& so_far, int hd, const AttentionShared& s) {
    const int lane = lane_number(), row = lane / 4, quarter = lane % 4;
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int x = 4; x < 32; x *= 2) so_far.total[h] += __shfl_xor_sync(~0u, so_far.total[h], x);
    float* const to = s.results + (warp_number() * kUnitHeads + 2 * (quarter % 2)) * s.width;
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk)
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float sum =
                    so_far.sums[chunk][i][j] + __shfl_xor_sync(~0u, so_far.sums[chunk][i][j], 2);
                const int d = chunk * 64 + row * 8 + 2 * i + j / 2;
                if (quarter < 2 && d < hd) to[j % 2 * s.width + d] = sum;
            }
    if (row == 0 && quarter < 2)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            to[h * s.width + hd] = so_far.top[h];
            to[h * s.width + hd + 1] = so_far.total[h];
        }
}

// Element d of `count` results of one head, each of (sums, top, total), added up.
struct Merged {
    float value = 0, top = -INFINITY, total = 0;
};
template <class Read>
__device__ inline Merged merge(int count, int hd, int d, const Read& read) {
    Merged all;
    for (int i = 0; i < count; ++i) all.top = fmaxf(all.top, read(i, hd));
    for (int i = 0; i < count; ++i) {
        const float old = fast_exp2(read(i, hd) - all.top);
        all.value = fmaf(old, read(i, d), all.value);
        all.total = fmaf(old, read(i, hd + 1), all.total);
    }
    return all;
}

// What all ranges of a pair gave, added up in their order: body(head * head_size + d, value).
template <class Body>
__device__ inline void merge_ranges(int splits, int hd, const float* partials, const AttentionShared& s,
                                    const Body& body) {
    const int stride = kUnitHeads * s.width;
    float *const shares = s.results,  // (heads, splits): what a range's sums are multiplied by
        *const totals = shares + kUnitHeads * splits;
    if (const int head = warp_number(); head < kUnitHeads) {
        float* const tops = shares + head * splits;
        float top = -INFINITY, total = 0;
        for (int i = lane_number(); i < splits; i += 32) {
            const float2 v =
                __ldcg(reinterpret_cast<const float2*>(partials + i * stride + head * s.width + hd));
            tops[i] = v.x;
            totals[head * splits + i] = v.y;
            top = fmaxf(top, v.x);
        }
        for (int x = 16; x > 0; x /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, x));
        for (int i = lane_number(); i < splits; i += 32) {
            tops[i] = fast_exp2(tops[i] - top);
            total = fmaf(tops[i], totals[head * splits + i], total);
        }
        for (int x = 16; x > 0; x /= 2) total += __shfl_xor_sync(~0u, total, x);
        for (int i = lane_number(); i < splits; i += 32) tops[i] /= total;
    }
    __syncthreads();
    for (int i = thread_number(); i < kUnitHeads * hd; i += kDecodeThreads) {
        const int head = i / hd;
        const float* const of = partials + head * s.width + i % hd;
        float value = 0;
#pragma unroll 16
        for (int split = 0; split < splits; ++split)
            value = fmaf(shares[head * splits + split], __ldcg(of + split * stride), value);
        body(i, value);
    }
}

// The results of the block's warps, and of all ranges of a pair, into DecodeModel::attended.
__device__ inline void finish_unit(const Units& units, const Unit& u, float v_scale,
                                   const AttentionShared& s) {
    const DecodeModel& m = model();
    bool* const last = &block().last;
    const int hd = m.head_size, n = u.heads * hd, stride = kUnitHeads * s.width;
    float* const partials =
        m.partials + static_cast<std::size_t>(u.pair * units.splits) * static_cast<std::size_t>(stride);
    float most = 0;
    const auto store = [&](int i, float value) {
        if (i >= n) return;
        const std::size_t at = static_cast<std::size_t>(u.token) * static_cast<std::size_t>(m.heads * hd) +
                               static_cast<std::size_t>(u.head * hd + i);
        most = larger(most, give(m.attended, at, value * v_scale));
    };
    for (int i = static_cast<int>(threadIdx.x); i < n; i += kDecodeThreads) {
        const int head = i / hd, d = i % hd;
        const Merged all = merge(kDecodeWarps, hd, d, [&](int w, int at) {
            return s.results[(w * kUnitHeads + head) * s.width + at];
        });
        if (units.splits == 1) {
            store(i, all.value / all.total);
            continue;
        }
        float* const to = partials + u.split * stride + head * s.width;
        to[d] = all.value;
        if (d == 0) to[hd] = all.top, to[hd + 1] = all.total;
    }
    if (units.splits > 1) {
        __syncthreads();
        if (threadIdx.x == 0) {
            *last = add_released(m.arrived + u.pair, 1) + 1 == static_cast<unsigned>(units.splits);
            if (*last) m.arrived[u.pair] = 0;
        }
        __syncthreads();
        if (*last) merge_ranges(units.splits, hd, partials, s, [&](int i, float value) { store(i, value); });
    }
    raise(block().amaxes, most);
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicMax(m.amaxes + u.token, block().amaxes[0]);
        block().amaxes[0] = 0;
    }
}

}  // namespace fp8lab::cuda
