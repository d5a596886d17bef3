// Eight values that a thread holds between the amax that makes their scale and their cast: in FP32, or in BF16 where they are
// rounded to it anyway. BF16 takes half of the registers, and two values are compared at a time.
#pragma once

#include <type_traits>

#include "kernels/casts/eight.cuh"
#include "kernels/device/instructions.cuh"

namespace fp8lab::cuda {

struct HeldF32 {
    Eight v = {};
    __device__ void hold(const Eight& from) {
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) v[j] = from[j];
    }
    __device__ void widen(Eight& to) const {
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) to[j] = v[j];
    }
    // Each value becomes the larger absolute one. NaN is kept, or ignored.
    template <bool kKeepsNan>
    __device__ void raise(const HeldF32& by) {
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j)
            v[j] = kKeepsNan ? larger(v[j], by.v[j]) : fmaxf(v[j], fabsf(by.v[j]));
    }
    // The largest of the eight.
    template <bool kKeepsNan>
    __device__ float amax() const {
        float most = 0;
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j)
            most = kKeepsNan ? larger(most, v[j]) : fmaxf(most, fabsf(v[j]));
        return most;
    }
};

struct HeldBf16 {
    static constexpr int kWords = kThreadCols / 2;
    std::uint32_t words[kWords] = {};
    HeldBf16() = default;
    __device__ explicit HeldBf16(const Packed<__nv_bfloat16>& from)
        : words{from.words.x, from.words.y, from.words.z, from.words.w} {}
    __device__ void hold(const Eight& from) { *this = HeldBf16(pack8(from)); }
    __device__ void widen(Eight& to) const {
        unpack(Packed<__nv_bfloat16>{make_uint4(words[0], words[1], words[2], words[3])}, to);
    }
    template <bool kKeepsNan>
    __device__ void raise(const HeldBf16& by) {
#pragma unroll
        for (int k = 0; k < kWords; ++k) words[k] = larger_pair<kKeepsNan>(words[k], by.words[k]);
    }
    template <bool kKeepsNan>
    __device__ float amax() const {
        std::uint32_t most = 0;
#pragma unroll
        for (int k = 0; k < kWords; ++k) most = larger_pair<kKeepsNan>(most, words[k]);
        const float low = __uint_as_float(most << 16), high = __uint_as_float(most & 0xFFFF0000u);
        return kKeepsNan ? larger(low, high) : fmaxf(low, high);
    }
};

// Values of activations that are T in memory. In BF16, hold() rounds to it.
template <class T>
using HeldAs = std::conditional_t<std::is_same_v<T, __nv_bfloat16>, HeldBf16, HeldF32>;

// A source with Values leaves it to the cast to round what its values() give. Its parts() give Values, which are rounded.
template <class Source>
struct HeldOf {
    using Type = HeldF32;
};
template <class Source>
requires requires { typename Source::Values; }
struct HeldOf<Source> {
    using Type = typename Source::Values;
};
template <class Source>
using Held = typename HeldOf<Source>::Type;

// As Held rounds them, for casts with one scale, which hold nothing.
template <class Source>
__device__ inline void round_values(Eight& v) {
    Held<Source> held;
    held.hold(v);
    held.widen(v);
}

}  // namespace fp8lab::cuda
