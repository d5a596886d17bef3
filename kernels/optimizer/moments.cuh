// What AdamW keeps between two updates, rounded as core/scaling/moment_storage.h has it: eight moments of a row, or four of a
// group of 128, read, rounded and stored. kIs: the Element of all moments of a kernel, stored to nearest; or kAny, where
// each says what it is. Then weights may be BF16 numbers too.
#pragma once

#include "core/base/rng.h"
#include "core/nn/streams.h"
#include "core/scaling/scale_rule.h"
#include "kernels/casts/codec.cuh"
#include "kernels/optimizer/many_updates.cuh"

namespace fp8lab::cuda {

constexpr int kAny = -1;
template <int kIs>
__device__ Element element_of(const MomentStore& store) {
    return kIs == kAny ? store.element : static_cast<Element>(kIs);
}
template <int kIs>
__device__ bool is_stochastic(const MomentStore& store) {
    return kIs == kAny && store.stochastic;
}

// random_bits() of elements first, ..., first + 3. Not inlined, as all that is drawn: kernels that may round stochastically would
// have it two dozen times.
__device__ __noinline__ inline uint4 four_random(std::uint64_t seed, std::uint64_t stream,
                                                 std::uint64_t first) {
    const auto word = [](std::uint64_t x, int shift) { return static_cast<std::uint32_t>(x >> shift); };
    const auto block = [&](std::uint64_t number) {
        const auto four = philox4x32({word(number, 0), word(number, 32), word(stream, 0), word(stream, 32)},
                                     {word(seed, 0), word(seed, 32)});
        return make_uint4(four[0], four[1], four[2], four[3]);
    };
    const uint4 a = block(first / 4);
    const auto off = static_cast<unsigned>(first % 4);
    if (off == 0) return a;
    const uint4 b = block(first / 4 + 1);
    return off == 1   ? make_uint4(a.y, a.z, a.w, b.x)
           : off == 2 ? make_uint4(a.z, a.w, b.x, b.y)
                      : make_uint4(a.w, b.x, b.y, b.z);
}

// ---- BF16, without a scale: overflow gives Inf
__device__ inline float to_bf16(float x) { return __bfloat162float(__float2bfloat16_rn(x)); }
// Up where the discarded bits and the random ones carry.
__device__ inline float to_bf16(float x, std::uint32_t random) {
    const std::uint32_t bits = __float_as_uint(x);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return __uint_as_float(0x7FC00000u);
    return __uint_as_float((bits & 0xFFFF0000u) + ((bits << 16) > ~random ? 0x10000u : 0));
}
template <int kCount>
__device__ void to_bf16(const float (&v)[kCount], float (&kept)[kCount]) {
#pragma unroll
    for (int j = 0; j < kCount; ++j) kept[j] = to_bf16(v[j]);
}
template <int kCount>
__device__ void to_bf16(const float (&v)[kCount], float (&kept)[kCount], std::uint64_t seed,
                        std::uint64_t stream, std::uint64_t first) {
#pragma unroll
    for (int j = 0; j < kCount; j += 4) {
        const uint4 random = four_random(seed, stream, first + j);
        kept[j] = to_bf16(v[j], random.x), kept[j + 1] = to_bf16(v[j + 1], random.y);
        kept[j + 2] = to_bf16(v[j + 2], random.z), kept[j + 3] = to_bf16(v[j + 3], random.w);
    }
}

// ---- FP8: a word of four codes
__device__ inline void decode4(Element element, std::uint32_t word, float factor, float* v) {
    const float2 low = element == Element::e4m3 ? ToFp8<__NV_E4M3>::back(word & 0xFFFF)
                                                : ToFp8<__NV_E5M2>::back(word & 0xFFFF),
                 high = element == Element::e4m3 ? ToFp8<__NV_E4M3>::back(word >> 16)
                                                 : ToFp8<__NV_E5M2>::back(word >> 16);
    v[0] = low.x * factor, v[1] = low.y * factor, v[2] = high.x * factor, v[3] = high.y * factor;
}
__device__ inline std::uint32_t encode4(Element element, const float* v, float scale) {
    const float a = v[0] * scale, b = v[1] * scale, c = v[2] * scale, d = v[3] * scale;
    return element == Element::e4m3 ? fp8_quad<__NV_E4M3>(a, b, c, d) : fp8_quad<__NV_E5M2>(a, b, c, d);
}
__device__ inline std::uint32_t stochastic_code(Element element, float x, std::uint32_t random) {
    const bool e4m3 = element == Element::e4m3;
    CodecRow row;  // what round_magnitude() reads of make_row()'s
    row.rounding = Rounding::stochastic;
    row.discard = e4m3 ? 20 : 21;
    row.min_exponent = e4m3 ? 127 - 6 : 127 - 14;
    row.rebias = (e4m3 ? 127u - 7 : 127u - 15) << 23;
    const std::uint32_t bits = __float_as_uint(x), pattern = bits & 0x7FFFFFFFu, largest = e4m3 ? 0x7E : 0x7B;
    const std::uint32_t magnitude = pattern > 0x7F800000u ? 0x7F
                                    : pattern == 0x7F800000u
                                        ? largest
                                        : min(round_magnitude(row, pattern, random), largest);
    return magnitude | (bits >> 31) << 7;
}
__device__ __noinline__ inline std::uint32_t encode4_stochastic(Element element, float4 v, uint4 random) {
    return stochastic_code(element, v.x, random.x) | stochastic_code(element, v.y, random.y) << 8 |
           stochastic_code(element, v.z, random.z) << 16 | stochastic_code(element, v.w, random.w) << 24;
}
__device__ inline int zeros_in(std::uint32_t word) {
    return 4 - __popc(((word & 0x7F7F7F7Fu) + 0x7F7F7F7Fu) & 0x80808080u);
}

// Of the values of `kLanes` neighbouring lanes, which share a scale; all lanes of the warp call it. NaN is ignored.
template <int kLanes, int kCount>
__device__ float group_amax(const float (&v)[kCount]) {
    float most = 0;
#pragma unroll
    for (int j = 0; j < kCount; ++j) most = fmaxf(most, fabsf(v[j]));
#pragma unroll
    for (int lane = kLanes / 2; lane > 0; lane /= 2)
        most = fmaxf(most, __shfl_xor_sync(0xFFFFFFFFu, most, lane));
    return most;
}
__device__ inline float group_scale(Element element, float amax) {
    return fp8lab::scale_from_amax(amax, element == Element::e4m3 ? 448.0F : 57344.0F, 0, 1.0F);
}

// The codes of a thread's part of a group, and the scale.
template <int kCount>
struct GroupCodes {
    std::uint32_t words[kCount / 4];
    float scale_inv;
};
template <int kIs, int kCount>
__device__ GroupCodes<kCount> group_codes(const MomentStore& store, const float (&v)[kCount],
                                          std::uint64_t seed, std::uint64_t stream, std::uint64_t first) {
    const Element element = element_of<kIs>(store);
    const float scale = group_scale(element, group_amax<kTileCols / kCount>(v));
    GroupCodes<kCount> out;
    out.scale_inv = 1 / scale;
#pragma unroll
    for (int j = 0; j < kCount; j += 4)
        out.words[j / 4] = is_stochastic<kIs>(store)
                               ? encode4_stochastic(element,
                                                    make_float4(v[j] * scale, v[j + 1] * scale,
                                                                v[j + 2] * scale, v[j + 3] * scale),
                                                    four_random(seed, stream, first + j))
                               : encode4(element, v + j, scale);
    return out;
}
// How many of the values became 0.
template <int kCount>
__device__ unsigned became_zero(const GroupCodes<kCount>& codes, const float (&v)[kCount]) {
    int zeros = 0;
#pragma unroll
    for (int j = 0; j < kCount / 4; ++j) zeros += zeros_in(codes.words[j]);
    if (zeros > 0)
#pragma unroll
        for (int j = 0; j < kCount; ++j) zeros -= v[j] == 0;
    return static_cast<unsigned>(zeros);
}

// ---- eight moments of a row as they come from memory
struct RawMoments {
    uint4 low, high;
    float scale_inv;
};
template <int kIs>
__device__ RawMoments fetch_moments(const void* moments, const MomentStore& store, std::size_t at) {
    RawMoments raw{};
    switch (element_of<kIs>(store)) {
        case Element::f32: {
            const auto* const p = reinterpret_cast<const uint4*>(static_cast<const float*>(moments) + at);
            raw.low = __ldcs(p), raw.high = __ldcs(p + 1);
            return raw;
        }
        case Element::bf16:
            raw.low = __ldcs(reinterpret_cast<const uint4*>(static_cast<const std::uint16_t*>(moments) + at));
            return raw;
        case Element::e4m3:
        case Element::e5m2: {
            const uint2 words =
                __ldcs(reinterpret_cast<const uint2*>(static_cast<const std::uint8_t*>(moments) + at));
            raw.low.x = words.x, raw.low.y = words.y;
            raw.scale_inv = store.scale_inv[at / kTileCols];
            return raw;
        }
    }
    return raw;
}
template <int kIs>
__device__ void unpack_moments(const RawMoments& raw, const MomentStore& store, Eight& v) {
    const Element element = element_of<kIs>(store);
    if (element == Element::f32) {
        const std::uint32_t words[8] = {raw.low.x,  raw.low.y,  raw.low.z,  raw.low.w,
                                        raw.high.x, raw.high.y, raw.high.z, raw.high.w};
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) v[j] = __uint_as_float(words[j]);
    } else if (element == Element::bf16) {
        unpack(Packed<__nv_bfloat16>{raw.low}, v);
    } else {
        decode4(element, raw.low.x, raw.scale_inv, v);
        decode4(element, raw.low.y, raw.scale_inv, v + 4);
    }
}
// Where a moment is stored, and its random numbers.
struct MomentPlace {
    std::size_t at;       // in memory
    std::uint64_t first;  // in the flattened matrix
    bool write;
};
// Rounds and stores; returns how many became 0. All lanes of a warp call it.
template <int kIs>
__device__ unsigned keep_moments(void* moments, const MomentStore& store, Eight& v, const MomentPlace& place,
                                 std::uint64_t seed, std::uint64_t stream) {
    const Element element = element_of<kIs>(store);
    if (element == Element::f32) {
        if (place.write) store8_streaming(static_cast<float*>(moments) + place.at, v);
        return 0;
    }
    if (element == Element::bf16) {
        unsigned zeros = 0;
        Eight kept;
        if (is_stochastic<kIs>(store))
            to_bf16(v, kept, seed, stream, place.first);
        else
            to_bf16(v, kept);
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) zeros += v[j] != 0 && kept[j] == 0;
        if (place.write) store8_streaming(static_cast<__nv_bfloat16*>(moments) + place.at, kept);
        return zeros;
    }
    const auto codes = group_codes<kIs>(store, v, seed, stream, place.first);
    if (place.write) {
        __stcs(reinterpret_cast<uint2*>(static_cast<std::uint8_t*>(moments) + place.at),
               make_uint2(codes.words[0], codes.words[1]));
        if (place.at % kTileCols == 0) store.scale_inv[place.at / kTileCols] = codes.scale_inv;
    }
    return became_zero(codes, v);
}

}  // namespace fp8lab::cuda
