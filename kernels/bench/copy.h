// References of the benches: a plain copy, an exact product, and the name of the kernel behind a launch.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "kernels/device/device.h"

namespace fp8lab::cuda {

void copy_kernel(const void* from, void* to, std::size_t bytes,
                 cudaStream_t stream);  // 16 bytes per thread and iteration

// D (m, n) = A B^T in FP64 over E4M3 codes; A (m, k), B (n, k).
void exact_product(const std::uint8_t* a, const std::uint8_t* b, double* d, int m, int n, int k,
                   cudaStream_t stream);

// The mangled name of the first kernel that `enqueue` puts on a stream; it is not run. Empty where the driver
// does not return it.
std::string kernel_name(const std::function<void(cudaStream_t)>& enqueue);

}  // namespace fp8lab::cuda
