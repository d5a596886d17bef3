#include <cuda_fp8.h>

#include "kernels/checks/self_checks.h"
#include "kernels/device/launching.cuh"

namespace fp8lab::cuda {
namespace {

constexpr int kThreads = 256;

template <__nv_fp8_interpretation_t kKind, __nv_saturation_t kSaturation>
__global__ void __launch_bounds__(kThreads)
    convert(unsigned long long* checksum, unsigned long long* counts) {
    __shared__ unsigned int block[256];
    block[threadIdx.x] = 0;
    __syncthreads();
    std::uint64_t sum = 0;
    const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.x) * kThreads;
    for (std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * kThreads + threadIdx.x; i < (1ull << 32);
         i += stride) {
        const auto pattern = static_cast<std::uint32_t>(i);
        const std::uint32_t code = __nv_cvt_float_to_fp8(__uint_as_float(pattern), kSaturation, kKind);
        sum += golden_hash(pattern, code);
        atomicAdd(&block[code], 1u);
    }
    atomicAdd(checksum, static_cast<unsigned long long>(sum));
    __syncthreads();
    if (block[threadIdx.x])
        atomicAdd(&counts[threadIdx.x], static_cast<unsigned long long>(block[threadIdx.x]));
}

}  // namespace

AllInputs convert_all_inputs(const GoldenConversion& to) {
    const Buffer<unsigned long long> checksum(1), counts(256);
    constexpr unsigned kBlocks = 132 * 8;
    const auto run = [&](auto kernel) {
        launch_alone("convert_all_inputs", kernel, dim3(kBlocks), kThreads, nullptr, checksum.get(),
                     counts.get());
    };
    const bool saturate = to.overflow == Overflow::saturate;
    if (to.format == "e4m3" && saturate)
        run(convert<__NV_E4M3, __NV_SATFINITE>);
    else if (to.format == "e4m3")
        run(convert<__NV_E4M3, __NV_NOSAT>);
    else if (saturate)
        run(convert<__NV_E5M2, __NV_SATFINITE>);
    else
        run(convert<__NV_E5M2, __NV_NOSAT>);
    return {checksum.download()[0], counts.download()};
}

}  // namespace fp8lab::cuda
