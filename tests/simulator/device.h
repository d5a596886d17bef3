// What CUDA C++ has and C++ has not, for kernels that are compiled for the CPU. Included before every file of kernels
// (-include).
#pragma once

#include <cuda_runtime.h>
// After it: these say how nvcc compiles.
#undef __shared__
#define __shared__ static
#undef __launch_bounds__
#define __launch_bounds__(...)

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tests/simulator/runtime.h"
#include "tests/simulator/threads.h"

#define threadIdx fp8lab::simulator::thread_index
#define blockIdx fp8lab::simulator::block_index
#define blockDim fp8lab::simulator::block_size
#define gridDim fp8lab::simulator::grid_size

namespace fp8lab::simulator {

template <class T>
std::uint64_t to_word(T value) {
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    return word;
}
template <class T>
T from_word(std::uint64_t word) {
    T value;
    std::memcpy(&value, &word, sizeof value);
    return value;
}
inline unsigned lane() {
    return (thread_index.x + block_size.x * (thread_index.y + block_size.y * thread_index.z)) % 32;
}

}  // namespace fp8lab::simulator

using std::isfinite;
using std::isinf;
using std::isnan;
using std::max;
using std::min;
inline int max(int a, unsigned b) { return std::max(a, static_cast<int>(b)); }

inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
inline int __float_as_int(float value) { return std::bit_cast<int>(value); }
inline double __longlong_as_double(long long bits) { return std::bit_cast<double>(bits); }

// Byte i of the result is byte (selector >> 4 i) & 7 of the eight bytes of a (low) and b.
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    const std::uint64_t both = static_cast<std::uint64_t>(b) << 32 | a;
    unsigned out = 0;
    for (unsigned i = 0; i < 4; ++i)
        out |= static_cast<unsigned>(both >> (selector >> (4 * i) & 7) * 8 & 0xFF) << (8 * i);
    return out;
}

#define __noinline__
#undef __grid_constant__
#define __grid_constant__

inline int __popc(unsigned bits) { return std::popcount(bits); }

inline void __syncthreads() { fp8lab::simulator::wait_for_block(); }
inline int __syncthreads_or(int value) { return fp8lab::simulator::any_of_block(value != 0); }
inline void __syncwarp(unsigned = 0xFFFFFFFF) { fp8lab::simulator::wait_for_warp(); }
inline void __threadfence() {}
inline void __nanosleep(unsigned) {}

template <class T>
T __shfl_sync(unsigned, T value, int lane, int width = 32) {
    using namespace fp8lab::simulator;
    const unsigned w = static_cast<unsigned>(width), base = fp8lab::simulator::lane() / w * w;
    return from_word<T>(exchange(to_word(value), base + static_cast<unsigned>(lane) % w));
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask, int = 32) {
    using namespace fp8lab::simulator;
    return from_word<T>(exchange(to_word(value), fp8lab::simulator::lane() ^ static_cast<unsigned>(mask)));
}
template <class T>
T __shfl_down_sync(unsigned, T value, unsigned delta, int width = 32) {
    using namespace fp8lab::simulator;
    const unsigned at = fp8lab::simulator::lane(), w = static_cast<unsigned>(width);
    return from_word<T>(exchange(to_word(value), at % w + delta < w ? at + delta : at));
}
inline unsigned __reduce_max_sync(unsigned, unsigned value) {
    return static_cast<unsigned>(
        fp8lab::simulator::combine(value, [](std::uint64_t a, std::uint64_t b) { return std::max(a, b); }));
}
inline unsigned __reduce_add_sync(unsigned, unsigned value) {
    return static_cast<unsigned>(
        fp8lab::simulator::combine(value, [](std::uint64_t a, std::uint64_t b) { return a + b; }));
}
inline int __any_sync(unsigned, int value) {
    return fp8lab::simulator::combine(value != 0, [](std::uint64_t a, std::uint64_t b) { return a | b; }) !=
           0;
}

inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
template <class T>
T __ldcs(const T* p) {
    return *p;
}
template <class T>
T __ldcg(const T* p) {
    return *p;
}
template <class T>
T __ldg(const T* p) {
    return *p;
}
template <class T>
void __stcs(T* p, const T& value) {
    *p = value;
}

template <class T, class U>
T atomicAdd(T* at, U value) {
    return std::exchange(*at, static_cast<T>(*at + static_cast<T>(value)));
}
template <class T, class U>
T atomicMax(T* at, U value) {
    return std::exchange(*at, std::max(*at, static_cast<T>(value)));
}

inline float __expf(float x) { return std::exp(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
