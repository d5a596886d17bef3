// Tests of the kernels run where a GPU is; elsewhere each reports itself as skipped, with the reason.
#pragma once

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <cstdio>

namespace fp8lab {

inline bool gpu_here() {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaSuccess && count > 0) return true;
    std::printf("skipped: no GPU here (%s)\n", cudaGetErrorString(status));
    return false;
}

inline bool is_hopper() {
    cudaDeviceProp properties{};
    return cudaGetDeviceProperties(&properties, 0) == cudaSuccess && properties.major == 9;
}

inline bool hopper_here() {
    if (is_hopper()) return true;
    std::printf("skipped: what is tested is Hopper's (compute capability 9.x)\n");
    return false;
}

inline bool two_gpus_here() {
    int count = 0;
    if (cudaGetDeviceCount(&count) == cudaSuccess && count >= 2) return true;
    std::printf("skipped: %d GPU here, two are needed\n", count);
    return false;
}

}  // namespace fp8lab

// First line of a test case that needs a GPU.
#define NEEDS_GPU() \
    if (!fp8lab::gpu_here()) return
// And of one that needs a Hopper GPU.
#define NEEDS_HOPPER() \
    if (!fp8lab::gpu_here() || !fp8lab::hopper_here()) return
#define NEEDS_TWO_GPUS() \
    if (!fp8lab::gpu_here() || !fp8lab::two_gpus_here()) return
