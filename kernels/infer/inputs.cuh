// What a matrix is multiplied with, cast and put into shared memory.
#pragma once

#include "kernels/infer/products.cuh"

namespace fp8lab::cuda {

struct SumOf {
    static __device__ float of(float a, float b) { return a + b; }
};
struct LargestOf {
    static __device__ float of(float a, float b) { return fmaxf(a, b); }
};
// The warps of a block share the tokens: a power of two of warps each.
struct TokenShare {
    int warps, token, at;  // warps of a token; this warp's token, and its number among them
    __device__ TokenShare() {
        warps = kDecodeWarps;
        while (warps > 1 && kDecodeWarps / warps < model().batch) warps /= 2;
        token = warp_number() / warps;
        at = warp_number() % warps;
    }
    __device__ bool real() const { return token < model().batch; }
    __device__ int stride() const { return 32 * warps; }
    __device__ int thread() const { return 32 * at + lane_number(); }
};
// Of all threads of a token; all threads of the block call it. slots: kDecodeWarps floats that the call before did not use.
template <class Op>
__device__ inline float over_token(const TokenShare& share, float v, float* slots) {
#pragma unroll
    for (int s = 16; s > 0; s /= 2) v = Op::of(v, __shfl_xor_sync(~0u, v, s));
    if (lane_number() == 0) slots[warp_number()] = v;
    __syncthreads();
    v = slots[share.token * share.warps];
    for (int w = 1; w < share.warps; ++w) v = Op::of(v, slots[share.token * share.warps + w]);
    return v;
}

// What other blocks of threads wrote is read past the first cache.
__device__ inline float4 fetch4(const float* p) { return __ldcg(reinterpret_cast<const float4*>(p)); }
__device__ inline float largest(float4 v) { return larger(larger(larger(larger(0, v.x), v.y), v.z), v.w); }
__device__ inline float add_squares(float so_far, float4 v) {
    return fmaf(v.w, v.w, fmaf(v.z, v.z, fmaf(v.y, v.y, fmaf(v.x, v.x, so_far))));
}

// How inputs are cast: as they are, to FP16 by a power of two, to E4M3 by 448 / amax.
enum class DecodeCast : int { bf16, f16, e4m3 };
constexpr DecodeWeights weights_of(DecodeCast cast) {
    return cast == DecodeCast::bf16 ? DecodeWeights::bf16 : DecodeWeights::e4m3;
}
// The factor before the cast. To FP16: what brings amax to [2^14, 2^15).
template <DecodeCast kCast>
__device__ inline float scale_of(float amax) {
    if (kCast == DecodeCast::bf16 || !(amax > 0) || !isfinite(amax)) return 1;
    if (kCast == DecodeCast::e4m3) return 448.0F / amax;
    const int exponent = static_cast<int>(__float_as_uint(amax) >> 23) - 127;  // of subnormal amaxes: -127
    return __uint_as_float(static_cast<std::uint32_t>(min(127, 14 - exponent) + 127) << 23);
}
template <DecodeCast kCast>
__device__ inline uint2 cast4(float4 v, float scale) {
    if constexpr (kCast == DecodeCast::bf16) return {bf16_pair(v.x, v.y), bf16_pair(v.z, v.w)};
    uint2 words;
    if constexpr (kCast == DecodeCast::f16) {
        const std::uint32_t low = bf16_pair(v.x, v.y), high = bf16_pair(v.z, v.w);
        words = {f16_pair(low_of(low) * scale, high_of(low) * scale),
                 f16_pair(low_of(high) * scale, high_of(high) * scale)};
    } else {
        widen(fp8_quad<__NV_E4M3>(v.x * scale, v.y * scale, v.z * scale, v.w * scale), words.x, words.y);
    }
    return words;
}

// x / rms(x) * gain of the residual stream, in the order of core/nn/ops/rms_norm.h, for a step. `times`: of the barrier behind which
// the stream is there; 0: it is there. Rows are kept in shared memory where it is large enough, else read again.
template <DecodeCast kCast>
__device__ inline void take_norm(int step, int times) {
    const DecodeModel& m = model();
    const DecodeMatrix& w = m.matrix[name_of(step)];
    const TokenShare share;
    const int d = m.d, first = share.thread() * 4, stride = share.stride() * 4;
    float* const gains = reinterpret_cast<float*>(x_of(w, m.batch));  // before there are sums
    float* const kept = block().plan.keeps_rows ? gains + d * (1 + share.token) : nullptr;
    const float* const gain = m.gains + static_cast<std::size_t>(step / 2) * static_cast<std::size_t>(d);
    for (int i = thread_number() * 4; i < d; i += kDecodeThreads * 4) copy16(gains + i, gain + i, true);
    if (times > 0) wait_for_blocks(times);
    const float* const row = m.stream + share.token * d;
    if (kept && share.real())
        for (int at = first; at < d; at += stride) copy16(kept + at, row + at, true);
    wait_for_copies();
    // body(column, value) for what this thread has of its row.
    const auto each = [&](const auto& body) {
        if (!share.real()) return;
        if (kept) {
#pragma unroll 4
            for (int at = first; at < d; at += stride) body(at, *reinterpret_cast<const float4*>(kept + at));
        } else {
#pragma unroll 4
            for (int at = first; at < d; at += stride) body(at, fetch4(row + at));
        }
    };
    float squares = 0;
    each([&](int, float4 v) { squares = add_squares(squares, v); });
    squares = over_token<SumOf>(share, squares, block().slots);  // and the gains of all threads are there
    const float inverse = 1 / sqrtf(squares / static_cast<float>(d) + 1e-6F);
    const auto normed = [&](int at, float4 v) -> float4 {
        const float4 g = *reinterpret_cast<const float4*>(gains + at);
        return {v.x * inverse * g.x, v.y * inverse * g.y, v.z * inverse * g.z, v.w * inverse * g.w};
    };
    float scale = 1;
    if constexpr (kCast != DecodeCast::bf16) {
        float amax = 0;
        each([&](int at, float4 v) { amax = larger(amax, largest(normed(at, v))); });
        amax = over_token<LargestOf>(share, amax, block().slots + kDecodeWarps);
        if (m.inputs == DecodeInputs::e4m3_tensor)
            for (int i = 0; i < kDecodeWarps; ++i) amax = fmaxf(amax, block().slots[kDecodeWarps + i]);
        scale = scale_of<kCast>(amax);
    }
    if (!share.real()) return;
    if (share.thread() == 0) block().factors[share.token] = 1 / scale;
    std::byte* const x = x_of(w, share.token);
    each([&](int at, float4 v) {
        *reinterpret_cast<uint2*>(x + at * 2) = cast4<kCast>(normed(at, v), scale);
    });
    for (int at = d + first; at < w.blocks * block_k(weights_of(kCast)); at += stride)
        *reinterpret_cast<uint2*>(x + at * 2) = {0, 0};
}

// An element of the results of attention or of SwiGLU, for the blocks of threads that multiply with them: in BF16 where inputs are,
// else in FP32, so that it is rounded once. Returns |what it is now|.
__device__ inline float give(float* rows, std::size_t at, float v) {
    if (model().inputs != DecodeInputs::bf16) {
        rows[at] = v;
        return fabsf(v);
    }
    const __nv_bfloat16 rounded = __float2bfloat16_rn(v);
    reinterpret_cast<__nv_bfloat16*>(rows)[at] = rounded;
    return fabsf(__bfloat162float(rounded));
}

// A slice of what was given, whose amaxes by token are known.
template <DecodeCast kCast>
__device__ inline void take_given(int name, int slice) {
    constexpr int kBlockK = block_k(weights_of(kCast));
    const DecodeModel& m = model();
    const DecodeMatrix& w = m.matrix[name];
    const TokenShare share;
    if (!share.real()) return;
    const float* const rows = name == kOut ? m.attended : m.hidden;
    const std::uint32_t* const amaxes = m.amaxes + (name == kOut ? 0 : kMostDecodeTokens);
    const int from = slice * w.slice * kBlockK, count = slice_blocks(w, slice) * kBlockK,
              real = min(count, w.cols - from), at_row = share.token * w.cols + from;
    std::byte* const x = x_of(w, share.token);
    // Of BF16: copied, then cast where it lies.
    const int first = share.thread() * 8, stride = share.stride() * 8;
    if constexpr (kCast != DecodeCast::e4m3) {
        const auto* const row = reinterpret_cast<const __nv_bfloat16*>(rows) + at_row;
        for (int at = first; at < count; at += stride) copy16(x + at * 2, row + min(at, real - 8), at < real);
    }
    float scale = 1;
    if constexpr (kCast != DecodeCast::bf16) {
        float amax = __uint_as_float(__ldcg(amaxes + share.token));
        if (m.inputs == DecodeInputs::e4m3_tensor)
            for (int b = 0; b < m.batch; ++b) amax = fmaxf(amax, __uint_as_float(__ldcg(amaxes + b)));
        scale = scale_of<kCast>(amax);
    }
    if (share.thread() == 0) block().factors[share.token] = 1 / scale;
    if constexpr (kCast == DecodeCast::e4m3) {
#pragma unroll 4
        for (int at = share.thread() * 4; at < count; at += share.stride() * 4)
            *reinterpret_cast<uint2*>(x + at * 2) =
                at < real ? cast4<kCast>(fetch4(rows + at_row + at), scale) : uint2{0, 0};
        return;
    }
    wait_for_copies();
    if constexpr (kCast == DecodeCast::f16)
#pragma unroll 4
        for (int at = first; at < real; at += stride) {
            uint4& v = *reinterpret_cast<uint4*>(x + at * 2);
            const uint2 low = cast4<kCast>({low_of(v.x), high_of(v.x), low_of(v.y), high_of(v.y)}, scale),
                        high = cast4<kCast>({low_of(v.z), high_of(v.z), low_of(v.w), high_of(v.w)}, scale);
            v = {low.x, low.y, high.x, high.y};
        }
}

// The largest of a warp joins the largest of a token. v: not negative.
__device__ inline void raise(std::uint32_t* amax, float v) {
#pragma unroll
    for (int s = 16; s > 0; s /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, s));
    if (lane_number() == 0 && v > 0) atomicMax(amax, __float_as_uint(v));
}

}  // namespace fp8lab::cuda
