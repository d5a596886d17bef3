#include <cuda.h>
#include <cuda_fp8.h>

#include <vector>

#include "kernels/bench/copy.h"
#include "kernels/device/launching.cuh"

namespace fp8lab::cuda {
namespace {

__global__ void __launch_bounds__(256) copy16(const uint4* from, uint4* to, std::size_t count) {
    constexpr int kAhead = 4;
    const std::size_t first = static_cast<std::size_t>(blockIdx.x) * blockDim.x * kAhead + threadIdx.x;
    uint4 held[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i)
        if (first + i * blockDim.x < count) held[i] = from[first + i * blockDim.x];
#pragma unroll
    for (int i = 0; i < kAhead; ++i)
        if (first + i * blockDim.x < count) to[first + i * blockDim.x] = held[i];
}

__device__ double value_of(std::uint8_t code) {
    return static_cast<double>(__half2float(__half(__nv_cvt_fp8_to_halfraw(code, __NV_E4M3))));
}

// One warp an output.
__global__ void exact_kernel(const std::uint8_t* a, const std::uint8_t* b, double* d, int m, int n, int k) {
    const int warp = static_cast<int>(blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32),
              lane = threadIdx.x % 32;
    if (warp >= m * n) return;
    const std::uint8_t *x = a + static_cast<std::size_t>(warp / n) * k,
                       *y = b + static_cast<std::size_t>(warp % n) * k;
    double sum = 0;
    for (int i = lane; i < k; i += 32) sum += value_of(x[i]) * value_of(y[i]);
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, offset);
    if (lane == 0) d[warp] = sum;
}

}  // namespace

void copy_kernel(const void* from, void* to, std::size_t bytes, cudaStream_t stream) {
    const std::size_t count = bytes / 16, blocks = (count + 1023) / 1024;
    launch_alone("copy", copy16, dim3(static_cast<unsigned>(blocks)), 256, stream,
                 static_cast<const uint4*>(from), static_cast<uint4*>(to), count);
}

void exact_product(const std::uint8_t* a, const std::uint8_t* b, double* d, int m, int n, int k,
                   cudaStream_t stream) {
    launch_alone("exact_product", exact_kernel, dim3(static_cast<unsigned>((m * n + 7) / 8)), 256, stream, a,
                 b, d, m, n, k);
}

// Captured into a graph, whose kernel node knows its function; the driver knows the function's name.
std::string kernel_name(const std::function<void(cudaStream_t)>& enqueue) {
    const Stream stream;
    check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    enqueue(stream.get());
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(stream.get(), &graph), "cudaStreamEndCapture");
    std::size_t count = 0;
    check(cudaGraphGetNodes(graph, nullptr, &count), "cudaGraphGetNodes");
    std::vector<cudaGraphNode_t> nodes(count);
    check(cudaGraphGetNodes(graph, nodes.data(), &count), "cudaGraphGetNodes");
    void *get_params = nullptr, *get_name = nullptr;
    cudaDriverEntryPointQueryResult found{};
    cudaGetDriverEntryPointByVersion("cuGraphKernelNodeGetParams", &get_params, 12000, cudaEnableDefault,
                                     &found);
    cudaGetDriverEntryPointByVersion("cuFuncGetName", &get_name, 12030, cudaEnableDefault, &found);
    std::string name;
    for (const cudaGraphNode_t node : nodes) {
        cudaGraphNodeType type{};
        check(cudaGraphNodeGetType(node, &type), "cudaGraphNodeGetType");
        if (type != cudaGraphNodeTypeKernel || !get_params || !get_name) continue;
        CUDA_KERNEL_NODE_PARAMS params{};
        using GetParams = CUresult (*)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS*);
        using GetName = CUresult (*)(const char**, CUfunction);
        if (reinterpret_cast<GetParams>(get_params)(node, &params) != CUDA_SUCCESS) continue;
        CUfunction function = params.func;
        if (!function && params.kern) {
            void* get_function = nullptr;
            cudaGetDriverEntryPointByVersion("cuKernelGetFunction", &get_function, 12000, cudaEnableDefault,
                                             &found);
            using GetFunction = CUresult (*)(CUfunction*, CUkernel);
            if (!get_function ||
                reinterpret_cast<GetFunction>(get_function)(&function, params.kern) != CUDA_SUCCESS)
                continue;
        }
        const char* text = nullptr;
        if (function && reinterpret_cast<GetName>(get_name)(&text, function) == CUDA_SUCCESS && text) {
            name = text;
            break;
        }
    }
    cudaGraphDestroy(graph);
    return name;
}

}  // namespace fp8lab::cuda
