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

}  // namespace fp8lab

// First line of a test case that needs a GPU.
#define NEEDS_GPU() \
    if (!fp8lab::gpu_here()) return
