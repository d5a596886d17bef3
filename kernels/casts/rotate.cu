#include "core/base/error.h"
#include "kernels/casts/emulate.h"
#include "kernels/device/launching.cuh"

namespace fp8lab::cuda {
namespace {

constexpr int kGroup = static_cast<int>(kRhtLength), kThreadsOfBlock = 256;

struct Groups {
    RhtSigns signs{};
    long long count = 0;
    long long abreast = 1;          // groups side by side: the columns, or the groups of a row
    long long line = 0, group = 0;  // from one line of groups, and from one group, to the next
    long long element = 1;          // from one element of a group to the next
};

// One thread a group; the sums in core's order.
__global__ void rotate_kernel(Groups groups, const float* in, float* out) {
    wait_for_the_kernel_before();
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= groups.count) return;
    const long long first = i / groups.abreast * groups.line + i % groups.abreast * groups.group;
    float v[kGroup];
#pragma unroll
    for (int k = 0; k < kGroup; ++k) v[k] = in[first + k * groups.element] * groups.signs[k];
#pragma unroll
    for (int apart = 1; apart < kGroup; apart *= 2)
#pragma unroll
        for (int k = 0; k < kGroup; ++k)
            if ((k & apart) == 0) {
                const float a = v[k], b = v[k + apart];
                v[k] = a + b;
                v[k + apart] = a - b;
            }
#pragma unroll
    for (int k = 0; k < kGroup; ++k) out[first + k * groups.element] = v[k] * 0.25F;
}

}  // namespace

void rotate(const float* in, float* out, int rows, int cols, int stride, Along along, const RhtSigns& signs,
            cudaStream_t stream) {
    const bool by_cols = along == Along::cols;
    if ((by_cols ? cols : rows) % kGroup != 0)
        throw Error(ErrorKind::backend, "rotate", "the extent is not a multiple of 16");
    Groups groups;
    groups.signs = signs;
    groups.abreast = by_cols ? cols / kGroup : cols;
    groups.line = by_cols ? stride : static_cast<long long>(stride) * kGroup;
    groups.group = by_cols ? kGroup : 1;
    groups.element = by_cols ? 1 : stride;
    groups.count = (by_cols ? rows : rows / kGroup) * groups.abreast;
    if (groups.count == 0) return;
    launch("rotate", rotate_kernel,
           dim3(static_cast<unsigned>((groups.count + kThreadsOfBlock - 1) / kThreadsOfBlock)),
           kThreadsOfBlock, stream, groups, in, out);
}

}  // namespace fp8lab::cuda
