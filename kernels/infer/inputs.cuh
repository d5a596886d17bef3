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
// Of all threads of the block, `kCount` values at once. slots: kCount * kDecodeWarps floats of shared memory.
template <class Op, int kCount>
__device__ inline void over_block(float (&v)[kCount], float* slots) {
#pragma unroll
    for (int b = 0; b < kCount; ++b) {
#pragma unroll
        for (int s = 16; s > 0; s /= 2) v[b] = Op::of(v[b], __shfl_xor_sync(~0u, v[b], s));
        if (lane_number() == 0) slots[b * kDecodeWarps + warp_number()] = v[b];
    }
    __syncthreads();
#pragma unroll
    for (int b = 0; b < kCount; ++b) {
        v[b] = slots[b * kDecodeWarps + lane_number() % kDecodeWarps];
#pragma unroll
        for (int s = kDecodeWarps / 2; s > 0; s /= 2) v[b] = Op::of(v[b], __shfl_xor_sync(~0u, v[b], s));
    }
    __syncthreads();
}

// What other blocks of threads wrote is read past the first cache.
__device__ inline float4 fetch4(const float* p) { return __ldcg(reinterpret_cast<const float4*>(p)); }
__device__ inline float4 fetch4(const __nv_bfloat16* p) {
    const uint2 v = __ldcg(reinterpret_cast<const uint2*>(p));
    return {low_of(v.x), high_of(v.x), low_of(v.y), high_of(v.y)};
}
__device__ inline float largest(float4 v) { return larger(larger(larger(larger(0, v.x), v.y), v.z), v.w); }
__device__ inline float add_squares(float so_far, float4 v) {
    return fmaf(v.w, v.w, fmaf(v.z, v.z, fmaf(v.y, v.y, fmaf(v.x, v.x, so_far))));
}

// The factor before the cast. Inputs in BF16 of weights in E4M3: a power of two that brings amax to [2^14, 2^15).
template <DecodeWeights kW>
__device__ inline float scale_of(float amax, DecodeInputs inputs) {
    if (kW == DecodeWeights::bf16 || !(amax > 0) || !isfinite(amax)) return 1;
    if (inputs != DecodeInputs::bf16) return 448.0F / amax;
    const int exponent = static_cast<int>(__float_as_uint(amax) >> 23) - 127;  // of subnormal amaxes: -127
    return __uint_as_float(static_cast<std::uint32_t>(min(127, 14 - exponent) + 127) << 23);
}
template <DecodeWeights kW>
__device__ inline void store4(const SharedX& x, DecodeInputs inputs, int token, int at, float4 v,
                              float scale) {
    uint2 words;
    if constexpr (kW == DecodeWeights::bf16) {
        words = {bf16_pair(v.x, v.y), bf16_pair(v.z, v.w)};
    } else if (inputs == DecodeInputs::bf16) {
        const std::uint32_t low = bf16_pair(v.x, v.y), high = bf16_pair(v.z, v.w);
        words = {f16_pair(low_of(low) * scale, high_of(low) * scale),
                 f16_pair(low_of(high) * scale, high_of(high) * scale)};
    } else {
        widen(fp8_quad<__NV_E4M3>(v.x * scale, v.y * scale, v.z * scale, v.w * scale), words.x, words.y);
    }
    *reinterpret_cast<uint2*>(x.at + token * x.stride_bytes + at * 2) = words;
}

// Floats of a row that a thread holds, in fours, while the norm is computed.
template <int kTokens>
constexpr int kHeld = kTokens == 1 ? 8 : 16 / kTokens;

struct NormInput {
    const float *stream, *gain;  // (batch, d), (d)
    int batch, d, padded;        // up to `padded` zeros are stored
    DecodeInputs inputs;
};

// x / rms(x) * gain, in the order of core/nn/ops/rms_norm.h. Rows that a thread can hold are read once.
template <DecodeWeights kW, int kTokens>
class NormTaker {
  public:
    // Begins to load the gains, which no other block of threads writes.
    __device__ NormTaker(const NormInput& in) : in_(in), held_(in.d <= kPerThread * kDecodeThreads * 4) {
#pragma unroll
        for (int i = 0; i < kPerThread; ++i)
            gains_[i] = at(i) < in.d ? __ldg(reinterpret_cast<const float4*>(in.gain + at(i))) : zero();
    }
    __device__ void take(const SharedX& x, float* slots) {
        float squares[kTokens] = {}, amax[kTokens] = {};
        if (held_) fetch_all();
#pragma unroll
        for (int b = 0; b < kTokens; ++b)
            each(b, [&](int, float4 v) { squares[b] = add_squares(squares[b], v); });
        over_block<SumOf>(squares, slots);
#pragma unroll
        for (int b = 0; b < kTokens; ++b) {
            inverse_[b] = 1 / sqrtf(squares[b] / static_cast<float>(in_.d) + 1e-6F);
            each(b, [&](int i, float4 v) { amax[b] = larger(amax[b], largest(normed(b, i, v))); });
        }
        if (kW == DecodeWeights::e4m3) over_block<LargestOf>(amax, slots);
        float all = 0;
#pragma unroll
        for (int b = 0; b < kTokens; ++b) all = fmaxf(all, amax[b]);
#pragma unroll
        for (int b = 0; b < kTokens; ++b) {
            if (b >= in_.batch) continue;
            const float scale =
                scale_of<kW>(in_.inputs == DecodeInputs::e4m3_tensor ? all : amax[b], in_.inputs);
            if (threadIdx.x == 0) x.factors[b] = 1 / scale;
            each(b, [&](int i, float4 v) { store4<kW>(x, in_.inputs, b, at(i), normed(b, i, v), scale); });
        }
        __syncthreads();
    }

  private:
    static constexpr int kPerThread = kHeld<kTokens>;
    static __device__ float4 zero() { return {0, 0, 0, 0}; }
    static __device__ int at(int i) { return (static_cast<int>(threadIdx.x) + i * kDecodeThreads) * 4; }
    __device__ float4 fetch(int b, int i) const {
        return b < in_.batch && at(i) < in_.d
                   ? fetch4(in_.stream + static_cast<std::size_t>(b) * static_cast<std::size_t>(in_.d) +
                            at(i))
                   : zero();
    }
    __device__ void fetch_all() {
#pragma unroll
        for (int b = 0; b < kTokens; ++b)
#pragma unroll
            for (int i = 0; i < kPerThread; ++i) values_[b][i] = fetch(b, i);
    }
    // body(i, value) for what this thread has of a row and of its padding.
    template <class Body>
    __device__ void each(int b, const Body& body) const {
        if (held_) {
#pragma unroll
            for (int i = 0; i < kPerThread; ++i)
                if (at(i) < in_.padded) body(i, values_[b][i]);
        } else if (b < in_.batch) {
            for (int i = 0; at(i) < in_.padded; ++i) body(i, fetch(b, i));
        }
    }
    __device__ float4 normed(int b, int i, float4 v) const {
        const float inverse = inverse_[b];
        float4 g = zero();
        if (held_) {
#pragma unroll
            for (int j = 0; j < kPerThread; ++j)
                if (j == i) g = gains_[j];
        } else if (at(i) < in_.d) {
            g = __ldg(reinterpret_cast<const float4*>(in_.gain + at(i)));
        }
        return {v.x * inverse * g.x, v.y * inverse * g.y, v.z * inverse * g.z, v.w * inverse * g.w};
    }

    const NormInput& in_;
    const bool held_;
    float4 gains_[kPerThread], values_[kTokens][kPerThread];
    float inverse_[kTokens] = {};
};

// A matrix in BF16 whose amaxes by token are known.
struct GivenInput {
    const __nv_bfloat16* rows;  // (batch, cols)
    const std::uint32_t* amaxes;
    int batch, cols;
    DecodeInputs inputs;
};
// Columns [first, first + count).
template <DecodeWeights kW>
__device__ inline void take_given(const GivenInput& in, int first, int count, const SharedX& x) {
    float amax[kMostDecodeTokens] = {}, all = 0;
    if (kW == DecodeWeights::e4m3)
#pragma unroll
        for (int b = 0; b < kMostDecodeTokens; ++b) {
            if (b < in.batch) amax[b] = __uint_as_float(__ldcg(in.amaxes + b));
            all = fmaxf(all, amax[b]);
        }
#pragma unroll
    for (int b = 0; b < kMostDecodeTokens; ++b) {
        if (b >= in.batch) continue;
        const float scale = scale_of<kW>(in.inputs == DecodeInputs::e4m3_tensor ? all : amax[b], in.inputs);
        if (threadIdx.x == 0) x.factors[b] = 1 / scale;
        const __nv_bfloat16* const row =
            in.rows + static_cast<std::size_t>(b) * static_cast<std::size_t>(in.cols) + first;
#pragma unroll 4
        for (int i = static_cast<int>(threadIdx.x) * 4; i < count; i += kDecodeThreads * 4)
            store4<kW>(x, in.inputs, b, i, first + i < in.cols ? fetch4(row + i) : float4{0, 0, 0, 0}, scale);
    }
    __syncthreads();
}

// The largest of a warp joins the largest of a token. v: not negative.
__device__ inline void raise(std::uint32_t* amax, float v) {
#pragma unroll
    for (int s = 16; s > 0; s /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, s));
    if (lane_number() == 0 && v > 0) atomicMax(amax, __float_as_uint(v));
}

}  // namespace fp8lab::cuda
