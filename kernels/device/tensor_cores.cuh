// Products of the tensor cores and reads of weights. Each has a definition for the tests' simulator of
// the GPU (tests/simulator), where a warp is 32 threads that take turns.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <cstring>

#include "kernels/device/instructions.cuh"

namespace fp8lab::cuda {

// ---- words of two numbers, the first in the low half
__device__ inline float low_of(std::uint32_t bf16x2) { return __uint_as_float(bf16x2 << 16); }
__device__ inline float high_of(std::uint32_t bf16x2) { return __uint_as_float(bf16x2 & 0xFFFF0000u); }
__device__ inline std::uint32_t bf16_pair(float low, float high) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const std::uint32_t*>(&pair);
}
__device__ inline std::uint32_t f16_pair(float low, float high) {
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const std::uint32_t*>(&pair);
}
// Four codes of E4M3 as two words of FP16, which holds each value.
__device__ inline void widen(std::uint32_t codes, std::uint32_t& first, std::uint32_t& second) {
#ifdef __CUDA_ARCH__
    asm("{ .reg .b16 l, h; mov.b32 {l, h}, %2; cvt.rn.f16x2.e4m3x2 %0, l; cvt.rn.f16x2.e4m3x2 %1, h; }"
        : "=r"(first), "=r"(second)
        : "r"(codes));
#else
    const auto half = [&](int i) {
        return static_cast<std::uint32_t>(
            __nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(codes >> (8 * i)), __NV_E4M3).x);
    };
    first = half(0) | half(1) << 16;
    second = half(2) | half(3) << 16;
#endif
}

// c += a b of m16n8k16 (PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type"): a (16, 16) and b (16, 8) of
// FP16 or BF16, c in FP32. Of lane 4 g + t: a[0], a[2] row g, columns 2 t and 2 t + 8 and the next; a[1], a[3] row g + 8; b[0],
// b[1] column g, rows as the columns of a; c[0], c[1] row g, columns 2 t and the next; c[2], c[3] row g + 8.
enum class Multiplied : int { f16, bf16 };
template <Multiplied kOf>
__device__ inline void multiply_add(float (&c)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                    std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
#ifdef __CUDA_ARCH__
    if constexpr (kOf == Multiplied::f16)
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
            "{%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    else
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
            "{%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#elif defined(FP8LAB_SIMULATOR)
    const auto value = [](std::uint32_t word, int i) {
        const auto bits = static_cast<unsigned short>(word >> (16 * i));
        if (kOf == Multiplied::bf16) return __uint_as_float(static_cast<std::uint32_t>(bits) << 16);
        return __half2float(__half(__half_raw{bits}));
    };
    const int g = static_cast<int>(threadIdx.x % 32 / 4), t = static_cast<int>(threadIdx.x % 4);
    for (int owner = 0; owner < 4; ++owner) {  // of columns 2 owner and 2 owner + 8 of a
        const std::uint32_t words[] = {a0, a1, a2, a3};
        std::uint32_t row[4], first[2], second[2];
        for (int i = 0; i < 4; ++i) row[i] = __shfl_sync(~0u, words[i], 4 * g + owner);
        for (int i = 0; i < 2; ++i) {
            first[i] = __shfl_sync(~0u, i ? b1 : b0, 4 * (2 * t) + owner);
            second[i] = __shfl_sync(~0u, i ? b1 : b0, 4 * (2 * t + 1) + owner);
        }
        for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 2; ++j) {
                c[0] += value(row[2 * i], j) * value(first[i], j);
                c[1] += value(row[2 * i], j) * value(second[i], j);
                c[2] += value(row[2 * i + 1], j) * value(first[i], j);
                c[3] += value(row[2 * i + 1], j) * value(second[i], j);
            }
    }
#endif
}

// ---- shared memory that a launch asks for
__device__ inline std::byte* dynamic_shared_memory() {
#ifdef FP8LAB_SIMULATOR
    alignas(128) static std::byte memory[232448];
#else
    extern __shared__ __align__(128) std::byte memory[];
#endif
    return memory;
}

#ifdef __CUDA_ARCH__
__device__ inline std::uint32_t shared_address(const void* p) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}
#endif
// 16 bytes that nobody writes and that are read once.
__device__ inline uint4 read_once(const void* p) {
#ifdef __CUDA_ARCH__
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
#else
    return *static_cast<const uint4*>(p);
#endif
}

// ---- copies of 16 bytes from what other blocks of threads wrote to shared memory; a thread that has waited sees its own. Not
// real: zeros.
__device__ inline void copy16(void* to, const void* from, bool real) {
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
                 "r"(real ? 16 : 0)
                 : "memory");
#else
    real ? std::memcpy(to, from, 16) : std::memset(to, 0, 16);
#endif
}
__device__ inline void wait_for_copies() {
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

}  // namespace fp8lab::cuda
