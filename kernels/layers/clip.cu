// The norm of all gradients and what clipping multiplies them by.
#include "kernels/casts/tile.cuh"
#include "kernels/layers/parts.cuh"

namespace fp8lab::cuda {
namespace {

constexpr int kEightsOfThread = 8, kElementsOfBlock = kThreads * kEightsOfThread * kThreadCols,
              kThreadsOfSum = 1024;

__device__ inline void add_squares(const Eight& v, double& sum) {
#pragma unroll
    for (const float x : v) sum = fma(static_cast<double>(x), static_cast<double>(x), sum);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    squares_kernel(const T* g, long long count, bool eights, double* partials) {
    __shared__ double shared[kThreads / 32];
    wait_for_the_kernel_before();
    const long long first = static_cast<long long>(blockIdx.x) * kElementsOfBlock;
    double sum = 0;
    if (eights && first + kElementsOfBlock <= count) {
        Packed<T> raw[kEightsOfThread];
#pragma unroll
        for (int k = 0; k < kEightsOfThread; ++k)
            raw[k] = fetch8(g + first + (k * kThreads + static_cast<int>(threadIdx.x)) * kThreadCols);
#pragma unroll
        for (int k = 0; k < kEightsOfThread; ++k) {
            Eight v;
            unpack(raw[k], v);
            add_squares(v, sum);
        }
    } else {
        const long long end = min(first + kElementsOfBlock, count);
        for (long long i = first + threadIdx.x; i < end; i += kThreads) {
            const double x = static_cast<double>(static_cast<float>(g[i]));
            sum = fma(x, x, sum);
        }
    }
    sum = block_sum(sum, shared);
    if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kThreadsOfSum)
    clip_kernel(const double* partials, int count, double limit, float* factor, double* norm, double share) {
    __shared__ double shared[kThreadsOfSum / 32];
    wait_for_the_kernel_before();
    double sum = 0;
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreadsOfSum) sum += partials[i];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    sum = warp_sum(shared[threadIdx.x]);
    if (threadIdx.x != 0) return;
    const double length = sqrt(sum) * share, f = limit / (length + 1e-6);
    *factor = (f < 1 ? static_cast<float>(f) : 1.0F) * static_cast<float>(share);
    if (norm) *norm = length;
}

}  // namespace

int square_partials(long long count) {
    return static_cast<int>((count + kElementsOfBlock - 1) / kElementsOfBlock);
}

void sum_of_squares(const void* g, Element element, long long count, double* partials, cudaStream_t stream) {
    if (count == 0) return;
    with_type(element, [&](auto* type) {
        using T = std::remove_cv_t<std::remove_pointer_t<decltype(type)>>;
        const bool eights = reinterpret_cast<std::uintptr_t>(g) % 16 == 0;
        launch("sum_of_squares", squares_kernel<T>, dim3(static_cast<unsigned>(square_partials(count))),
               kThreads, stream, static_cast<const T*>(g), count, eights, partials);
    });
}

void clip_factor(const double* partials, int count, double limit, float* factor, double* norm,
                 cudaStream_t stream, double share) {
    launch("clip_factor", clip_kernel, dim3(1), kThreadsOfSum, stream, partials, count, limit, factor, norm,
           share);
}

}  // namespace fp8lab::cuda
