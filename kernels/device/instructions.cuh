// Instructions of the GPU that CUDA C++ has no name for. Each has its definition beside it, for compilers of the CPU:
// tests run the kernels there too (tests/simulator).
#pragma once

#include <cuda_fp8.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace fp8lab::cuda {

// Four codes a word, saturating: the second conversion takes the first one's result along, which two 16-bit results
// put together do not.
template <__nv_fp8_interpretation_t kKind>
__device__ inline std::uint32_t fp8_quad(float a, float b, float c, float d) {
    std::uint32_t out = 0;
#ifdef __CUDA_ARCH__
    if constexpr (kKind == __NV_E4M3)
        asm("{ .reg .b16 low, high; cvt.rn.satfinite.e4m3x2.f32 low, %2, %1; "
            "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3; mov.b32 %0, {low, high}; }"
            : "=r"(out)
            : "f"(a), "f"(b), "f"(c), "f"(d));
    else
        asm("{ .reg .b16 low, high; cvt.rn.satfinite.e5m2x2.f32 low, %2, %1; "
            "cvt.rn.satfinite.e5m2x2.f32 high, %4, %3; mov.b32 %0, {low, high}; }"
            : "=r"(out)
            : "f"(a), "f"(b), "f"(c), "f"(d));
#else
    const float values[] = {a, b, c, d};
    for (int i = 0; i < 4; ++i)
        out |= static_cast<std::uint32_t>(__nv_cvt_float_to_fp8(values[i], __NV_SATFINITE, kKind)) << (8 * i);
#endif
    return out;
}

// |x| or the larger so far, as the bits of a non-negative float; NaN is larger than Inf.
__device__ inline float larger(float so_far, float x) {
#ifdef __CUDA_ARCH__
    float out;
    asm("{ .reg .f32 a; abs.f32 a, %2; max.NaN.f32 %0, %1, a; }" : "=f"(out) : "f"(so_far), "f"(x));
    return out;
#else
    if (std::isnan(so_far) || std::isnan(x)) return std::nanf("");
    return std::fmax(so_far, std::fabs(x));
#endif
}

// The same of two BF16 in each word; NaN is kept, or ignored unless both are NaN. nvcc 13.0 makes one instruction
// of two in a row (VHMNMX, sm_90).
template <bool kKeepsNan>
__device__ inline std::uint32_t larger_pair(std::uint32_t so_far, std::uint32_t x) {
#ifdef __CUDA_ARCH__
    std::uint32_t out;
    if constexpr (kKeepsNan)
        asm("{ .reg .b32 a; abs.bf16x2 a, %2; max.NaN.bf16x2 %0, %1, a; }" : "=r"(out) : "r"(so_far), "r"(x));
    else
        asm("{ .reg .b32 a; abs.bf16x2 a, %2; max.bf16x2 %0, %1, a; }" : "=r"(out) : "r"(so_far), "r"(x));
    return out;
#else
    const auto larger_of = [](std::uint32_t a, std::uint32_t b) {
        constexpr std::uint32_t kInf = 0x7F80, kNan = 0x7FFF;
        if (a > kInf || b > kInf) return kKeepsNan || (a > kInf && b > kInf) ? kNan : std::min(a, b);
        return std::max(a, b);
    };
    return larger_of(so_far & 0xFFFF, x & 0x7FFF) | larger_of(so_far >> 16, x >> 16 & 0x7FFF) << 16;
#endif
}

// Approximations: relative errors of about 2^-11 (tanh), |x| 2^-24 (2^x), 2^-23 (root, 1 / x). Those of
// 2^x, the root and 1 / x take subnormal operands as 0.
__device__ inline float fast_tanh(float x) {
#ifdef __CUDA_ARCH__
    float y;
    asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return std::tanh(x);
#endif
}
__device__ inline float fast_exp2(float x) {
#ifdef __CUDA_ARCH__
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return std::exp2(x);
#endif
}
__device__ inline float fast_root(float x) {
#ifdef __CUDA_ARCH__
    float y;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return std::sqrt(x);
#endif
}
__device__ inline float fast_inverse(float x) {
#ifdef __CUDA_ARCH__
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return 1 / x;
#endif
}

// Roots and quotients as IEEE 754 rounds them, of operands in the middle of the range, 2^-60 to 2^60: the code of
// nvcc for sqrtf(x) and n / d, without its branch for zeros, subnormals and what is near the ends. in_the_middle():
// of the largest beyond_least() of several operands, whether all of them are.
constexpr std::uint32_t kLeast = 0x21800000u, kMost = 0x5D800000u;
__device__ inline std::uint32_t beyond_least(float x) {
#ifdef __CUDA_ARCH__
    return __float_as_uint(x) - kLeast;
#else
    return std::bit_cast<std::uint32_t>(x) - kLeast;
#endif
}
__device__ inline bool in_the_middle(std::uint32_t largest) { return largest <= kMost - kLeast; }
__device__ inline float root_in_the_middle(float x) {
#ifdef __CUDA_ARCH__
    float inverse;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));
    const float root = x * inverse;
    return fmaf(fmaf(-root, root, x), 0.5F * inverse, root);
#else
    return std::sqrt(x);
#endif
}
__device__ inline float quotient_in_the_middle(float n, float d) {
#ifdef __CUDA_ARCH__
    float inverse = fast_inverse(d);
    inverse = fmaf(inverse, fmaf(-d, inverse, 1.0F), inverse);
    const float near = n * inverse, nearer = fmaf(inverse, fmaf(-d, near, n), near);
    return fmaf(inverse, fmaf(-d, nearer, n), nearer);
#else
    return n / d;
#endif
}

__device__ inline void prefetch(const void* address) {
#ifdef __CUDA_ARCH__
    asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
#else
    static_cast<void>(address);
#endif
}

}  // namespace fp8lab::cuda
