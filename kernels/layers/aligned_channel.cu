// Channel 1 of a SwiGLU: a row of gate, a row of up, a column of down.
#include <cuda_bf16.h>

#include "kernels/device/launching.cuh"
#include "kernels/layers/launch.h"

namespace fp8lab::cuda {
namespace {

constexpr unsigned kThreads = 128;

// One thread for each place of the model's width.
template <class T>
__global__ void clear_kernel(T* gate_up, int gate_up_stride, int ffn, T* down, int down_stride, int d) {
    wait_for_the_kernel_before();
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= d) return;
    const T zero = static_cast<T>(0.0F);
    if (gate_up) {
        gate_up[i] = zero;
        gate_up[static_cast<std::size_t>(ffn) * gate_up_stride + i] = zero;
    }
    if (down) down[static_cast<std::size_t>(i) * down_stride] = zero;
}

__global__ void restore_kernel(float* gate_up, int gate_up_stride, int ffn, float* down, int down_stride,
                               int d, const float* held) {
    wait_for_the_kernel_before();
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= d) return;
    gate_up[i] = gate_up[static_cast<std::size_t>(ffn) * gate_up_stride + i] = held[i];
    down[static_cast<std::size_t>(i) * down_stride] = held[d + i];
}

dim3 blocks(int d) { return dim3((static_cast<unsigned>(d) + kThreads - 1) / kThreads); }

}  // namespace

void clear_channel(const ChannelPlace& at, Element element, cudaStream_t stream) {
    const auto run = [&]<class T>(T*) {
        launch("clear_channel", clear_kernel<T>, blocks(at.d), kThreads, stream, static_cast<T*>(at.gate_up),
               at.gate_up_stride, at.ffn, static_cast<T*>(at.down), at.down_stride, at.d);
    };
    if (element == Element::f32)
        run(static_cast<float*>(nullptr));
    else
        run(static_cast<__nv_bfloat16*>(nullptr));
}

void restore_channel(const ChannelPlace& at, const float* held, cudaStream_t stream) {
    launch("restore_channel", restore_kernel, blocks(at.d), kThreads, stream, static_cast<float*>(at.gate_up),
           at.gate_up_stride, at.ffn, static_cast<float*>(at.down), at.down_stride, at.d, held);
}

}  // namespace fp8lab::cuda
