#include "kernels/device/launching.cuh"
#include "kernels/infer/start_token.h"

namespace fp8lab::cuda {
namespace {

constexpr unsigned kThreadsOfStart = 1024;

// One block of threads, so that all of it has read the position before it is counted on.
__global__ void start_kernel(TokenStart s) {
    const std::int32_t position = *s.next;
    const float* const from =
        s.embedding + static_cast<std::size_t>(s.tokens[position]) * static_cast<std::size_t>(s.d);
    for (int i = static_cast<int>(threadIdx.x); i < s.d; i += static_cast<int>(blockDim.x))
        s.stream[i] = from[i];
    __syncthreads();
    if (threadIdx.x == 0) {
        *s.length = position;
        *s.next = position + 1;
    }
}

}  // namespace

void start_token(const TokenStart& start, cudaStream_t stream) {
    launch_alone("start_token", start_kernel, dim3(1), kThreadsOfStart, stream, start);
}

}  // namespace fp8lab::cuda
