// Launches that overlap: a kernel's blocks may be set up while the kernel before it on the stream still runs,
// and wait for its end on the device (programmatic dependent launch, Hopper and later). Saves about a
// microsecond a kernel, which is what short steps are made of.
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

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

using LaunchAttributes = std::vector<cudaLaunchAttribute>;

template <class... Parameters, class... Arguments>
void launch_with_memory(const char* name, LaunchAttributes attributes, void (*kernel)(Parameters...),
                        dim3 grid, unsigned block, [[maybe_unused]] std::size_t shared_bytes,
                        cudaStream_t stream, Arguments&&... arguments) {
#ifdef FP8LAB_SIMULATOR
    std::tuple<Parameters...> values(static_cast<Parameters>(std::forward<Arguments>(arguments))...);
    simulator::launch({grid.x, grid.y, grid.z}, {block, 1, 1}, [=] { std::apply(kernel, values); });
#else
    cudaLaunchConfig_t config{};
    config.gridDim = grid;
    config.blockDim = dim3(block);
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = attributes.data();
    config.numAttrs = static_cast<unsigned>(attributes.size());
    check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(std::forward<Arguments>(arguments))...),
          name);
#endif
}

template <class... Parameters, class... Arguments>
void launch_with(const char* name, LaunchAttributes attributes, void (*kernel)(Parameters...), dim3 grid,
                 unsigned block, cudaStream_t stream, Arguments&&... arguments) {
    launch_with_memory(name, std::move(attributes), kernel, grid, block, 0, stream,
                       std::forward<Arguments>(arguments)...);
}

// The launch attribute of kernels that begin with wait_for_the_kernel_before().
inline LaunchAttributes overlapping() {
    if (!launches_overlap()) return {};
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    return {attribute};
}

template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), dim3 grid, unsigned block, cudaStream_t stream,
            Arguments&&... arguments) {
    launch_with(name, overlapping(), kernel, grid, block, stream, std::forward<Arguments>(arguments)...);
}

// For kernels beside one of much shared memory: multiprocessors keep as much of it as they can, for blocks of that one.
template <class... Parameters, class... Arguments>
void launch_beside(const char* name, void (*kernel)(Parameters...), dim3 grid, unsigned block,
                   cudaStream_t stream, Arguments&&... arguments) {
    LaunchAttributes attributes = overlapping();
    cudaLaunchAttribute& attribute = attributes.emplace_back();
    attribute.id = cudaLaunchAttributePreferredSharedMemoryCarveout;
    attribute.val.sharedMemCarveout = cudaSharedmemCarveoutMaxShared;
    launch_with(name, std::move(attributes), kernel, grid, block, stream,
                std::forward<Arguments>(arguments)...);
}

// For kernels that do not wait for the one before: the stream does.
template <class... Parameters, class... Arguments>
void launch_alone(const char* name, void (*kernel)(Parameters...), dim3 grid, unsigned block,
                  cudaStream_t stream, Arguments&&... arguments) {
    launch_with(name, {}, kernel, grid, block, stream, std::forward<Arguments>(arguments)...);
}

// For kernels whose blocks wait for each other: the GPU starts all of them at once.
template <class... Parameters, class... Arguments>
void launch_together(const char* name, void (*kernel)(Parameters...), dim3 grid, unsigned block,
                     cudaStream_t stream, Arguments&&... arguments) {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
    launch_with(name, {attribute}, kernel, grid, block, stream, std::forward<Arguments>(arguments)...);
}

// The same with shared memory that the launch asks for, more than 48 KiB too.
template <class... Parameters, class... Arguments>
void launch_together_with_memory(const char* name, void (*kernel)(Parameters...), dim3 grid, unsigned block,
                                 std::size_t shared_bytes, cudaStream_t stream, Arguments&&... arguments) {
#ifndef FP8LAB_SIMULATOR
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shared_bytes)),
          name);
#endif
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
    launch_with_memory(name, {attribute}, kernel, grid, block, shared_bytes, stream,
                       std::forward<Arguments>(arguments)...);
}

// For a kernel of launch_together(): after it all blocks see everything that any of them wrote before it.
// `arrived` counts on from launch to launch.
__device__ inline void wait_for_all_blocks(std::uint32_t* arrived) {
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        const std::uint32_t blocks = gridDim.x * gridDim.y;
        __threadfence();
        const std::uint32_t goal = (atomicAdd(arrived, 1u) / blocks + 1) * blocks;
        while (*static_cast<volatile std::uint32_t*>(arrived) < goal) __nanosleep(32);
        __threadfence();
    }
    __syncthreads();
}

}  // namespace fp8lab::cuda
