// The 8 consecutive elements of a row that a thread works on: from memory, and back.
#pragma once

#include <cuda_bf16.h>

#include <cstddef>

#include "kernels/device/launch.h"

namespace fp8lab::cuda {

constexpr int kThreadCols = 8;
using Eight = float[kThreadCols];

// 8 consecutive elements, 16-byte aligned, as they come from memory: first all loads of a thread are on their
// way, then the first value is unpacked.
template <class T>
struct Packed;
template <>
struct Packed<float> {
    float4 a, b;
};
template <>
struct Packed<__nv_bfloat16> {
    uint4 words;
};
__device__ inline Packed<float> fetch8(const float* p) {
    return {*reinterpret_cast<const float4*>(p), *reinterpret_cast<const float4*>(p + 4)};
}
__device__ inline Packed<__nv_bfloat16> fetch8(const __nv_bfloat16* p) {
    return {*reinterpret_cast<const uint4*>(p)};
}
// The same for memory that is not read again soon: the first to leave the L2 cache.
__device__ inline Packed<float> fetch8_streaming(const float* p) {
    return {__ldcs(reinterpret_cast<const float4*>(p)), __ldcs(reinterpret_cast<const float4*>(p + 4))};
}
__device__ inline Packed<__nv_bfloat16> fetch8_streaming(const __nv_bfloat16* p) {
    return {__ldcs(reinterpret_cast<const uint4*>(p))};
}
// `count` elements from anywhere, zeros behind them.
__device__ inline Packed<float> fetch_some(const float* p, int count) {
    const auto at = [&](int i) { return i < count ? p[i] : 0.0F; };
    return {make_float4(at(0), at(1), at(2), at(3)), make_float4(at(4), at(5), at(6), at(7))};
}
__device__ inline void unpack(const Packed<float>& from, Eight& v) {
    const auto& [a, b] = from;
    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
}
__device__ inline void unpack(const Packed<__nv_bfloat16>& from, Eight& v) {
    const std::uint32_t words[4] = {from.words.x, from.words.y, from.words.z, from.words.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        v[2 * i] = __uint_as_float(words[i] << 16);
        v[2 * i + 1] = __uint_as_float(words[i] & 0xFFFF0000u);
    }
}
__device__ inline void load8(const float* p, Eight& v) { unpack(fetch8(p), v); }
// The batch of this step; a task whose data never change needs not wait for the step's number.
__device__ inline const float* batch_of(const BatchRing& ring) {
    return ring.slots == 1 ? ring.base : ring.base + ring.arm->step % ring.slots * ring.stride;
}
// Loads from a batch, which has no padding. kEights: its columns come in eights, so that no thread's part ends
// before the row does; a part beyond the row (its values are not used) then reads the last one.
template <bool kEights>
__device__ inline Packed<float> fetch_unpadded(const float* batch, int r, int c, Shape s) {
    const float* const row = batch + static_cast<std::size_t>(r) * s.cols;
    if constexpr (kEights) return fetch8(row + min(c, s.cols - kThreadCols));
    return fetch_some(row + c, s.cols - c);
}
__device__ inline void store8(float* p, const Eight& v) {
    *reinterpret_cast<float4*>(p) = make_float4(v[0], v[1], v[2], v[3]);
    *reinterpret_cast<float4*>(p + 4) = make_float4(v[4], v[5], v[6], v[7]);
}
__device__ inline Packed<__nv_bfloat16> pack8(const Eight& v) {
    __nv_bfloat162 pairs[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) pairs[i] = __floats2bfloat162_rn(v[2 * i], v[2 * i + 1]);
    return {*reinterpret_cast<const uint4*>(pairs)};
}
__device__ inline void store8(__nv_bfloat16* p, const Eight& v) {
    *reinterpret_cast<uint4*>(p) = pack8(v).words;
}
__device__ inline void store8_streaming(float* p, const Eight& v) {
    __stcs(reinterpret_cast<float4*>(p), make_float4(v[0], v[1], v[2], v[3]));
    __stcs(reinterpret_cast<float4*>(p + 4), make_float4(v[4], v[5], v[6], v[7]));
}
__device__ inline void store8_streaming(__nv_bfloat16* p, const Eight& v) {
    __stcs(reinterpret_cast<uint4*>(p), pack8(v).words);
}

}  // namespace fp8lab::cuda
