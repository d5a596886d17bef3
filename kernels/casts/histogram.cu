// Log2Histogram of core/stats on the device.
#include <cuda_fp8.h>

#include "kernels/casts/emulate.h"
#include "kernels/device/launching.cuh"

namespace fp8lab::cuda {
namespace {

constexpr int kThreads = 256, kBins = Log2Histogram::kBins, kCounts = kBins + 4;

__device__ float value_at(const void* in, Element element, long long i) {
    switch (element) {
        case Element::f32:
            return static_cast<const float*>(in)[i];
        case Element::bf16:
            return __uint_as_float(static_cast<std::uint32_t>(static_cast<const std::uint16_t*>(in)[i])
                                   << 16);
        case Element::e4m3:
            return __half2float(
                __half(__nv_cvt_fp8_to_halfraw(static_cast<const std::uint8_t*>(in)[i], __NV_E4M3)));
        case Element::e5m2:
            return __half2float(
                __half(__nv_cvt_fp8_to_halfraw(static_cast<const std::uint8_t*>(in)[i], __NV_E5M2)));
    }
    return 0;
}

// counts: bins, zeros, below, above, nonfinite.
__device__ int bin_of(float x) {
    const std::uint32_t pattern = __float_as_uint(x) & 0x7FFFFFFFu;
    if (pattern == 0) return kBins;
    if (pattern >= 0x7F800000u) return kBins + 3;
    const int bin = static_cast<int>(pattern >> 23) - 127 - Log2Histogram::kLowest;
    return bin < 0 ? kBins + 1 : bin >= kBins ? kBins + 2 : bin;
}

__global__ void histogram_kernel(const void* in, Element element, const float* factor, long long count,
                                 unsigned long long* counts) {
    __shared__ unsigned int block[kCounts];
    for (int b = threadIdx.x; b < kCounts; b += kThreads) block[b] = 0;
    __syncthreads();
    const float f = factor ? *factor : 1.0F;
    const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)
        atomicAdd(&block[bin_of(value_at(in, element, i) * f)], 1u);
    __syncthreads();
    for (int b = threadIdx.x; b < kCounts; b += kThreads)
        if (block[b]) atomicAdd(&counts[b], static_cast<unsigned long long>(block[b]));
}

}  // namespace

void log2_histogram(const void* in, Element element, const float* factor, long long count,
                    unsigned long long* counts, cudaStream_t stream) {
    launch_alone("log2_histogram", histogram_kernel, dim3(132 * 4), kThreads, stream, in, element, factor,
                 count, counts);
}

}  // namespace fp8lab::cuda
