// Operands of the tensor cores from shared memory, and copies to it by all threads of a block. Each has a definition for the
// tests' simulator of the GPU, as in kernels/device/tensor_cores.cuh.
#pragma once

#include "kernels/device/tensor_cores.cuh"

namespace fp8lab::cuda {

// An address in shared memory, of 32 bits on the device.
#ifdef __CUDA_ARCH__
using SharedAddress = std::uint32_t;
__device__ inline SharedAddress to_shared(const std::byte* p) { return shared_address(p); }
#else
using SharedAddress = const std::byte*;
__device__ inline SharedAddress to_shared(const std::byte* p) { return p; }
#endif

// 16 bytes to shared memory, or zeros where they are not `real` (the address is one that could be read).
__device__ inline void copy_piece(SharedAddress to, const std::byte* from, bool real) {
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(real ? 16 : 0)
                 : "memory");
#else
    if (real)
        std::memcpy(const_cast<std::byte*>(to), from, 16);
    else
        std::memset(const_cast<std::byte*>(to), 0, 16);
#endif
}
// Ends a group of copies; waits until at most kLeft groups of this thread are not there.
__device__ inline void end_group() {
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int kLeft>
__device__ inline void wait_for_groups() {
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
#endif
}

// Four matrices of 8 x 8 numbers of 16 bits (PTX ISA, ldmatrix): lane 8 i + r gives the address of row r of matrix i. Lane
// 4 g + t gets of each row g, columns 2 t and the next; kTransposed: column g, rows 2 t and the next.
template <bool kTransposed>
__device__ inline void load_fragments(std::uint32_t (&to)[4], SharedAddress row) {
#ifdef __CUDA_ARCH__
    if constexpr (kTransposed)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(row)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(row)
                     : "memory");
#elif defined(FP8LAB_SIMULATOR)
    const int g = static_cast<int>(threadIdx.x % 32 / 4), t = static_cast<int>(threadIdx.x % 4);
    for (int i = 0; i < 4; ++i) {
        if constexpr (kTransposed) {
            std::uint16_t parts[2];
            for (int j = 0; j < 2; ++j)
                std::memcpy(&parts[j], __shfl_sync(~0u, row, 8 * i + 2 * t + j) + 2 * g, 2);
            to[i] = static_cast<std::uint32_t>(parts[0]) | static_cast<std::uint32_t>(parts[1]) << 16;
        } else {
            std::memcpy(&to[i], __shfl_sync(~0u, row, 8 * i + g) + 4 * t, 4);
        }
    }
#endif
}

}  // namespace fp8lab::cuda
