// Launches that overlap: a kernel's blocks may be set up while the kernel before it on the stream still runs,
// and wait for its end on the device (programmatic dependent launch, Hopper and later). Saves about a
// microsecond a kernel, which is what short steps are made of.
#pragma once

#include "kernels/device/device.h"

namespace fp8lab::cuda {

// First statement of every kernel that is launched by launch(): nothing of the kernel before may be read
// earlier. The next kernel may be set up from here on.
__device__ inline void wait_for_the_kernel_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
#endif
}

template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), dim3 grid, unsigned block, cudaStream_t stream,
            Arguments&&... arguments) {
    cudaLaunchConfig_t config{};
    config.gridDim = grid;
    config.blockDim = dim3(block);
    config.stream = stream;
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &attribute;
    config.numAttrs = launches_overlap() ? 1 : 0;
    check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(std::forward<Arguments>(arguments))...),
          name);
}

}  // namespace fp8lab::cuda
