// The embedding and its gradient.
#include "kernels/casts/tile.cuh"
#include "kernels/layers/parts.cuh"

namespace fp8lab::cuda {
namespace {

constexpr int kThreadsOfBlock = 128;

template <class T>
__global__ void gather_kernel(TokenRing ring, const float* table, Shape s, bool round, T* out) {
    wait_for_the_kernel_before();
    const int eights = s.padded_cols / kThreadCols;
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const int r = static_cast<int>(i / eights), c = static_cast<int>(i % eights) * kThreadCols;
    if (r >= s.rows) return;
    const int token = batch_of(ring).tokens[r];
    const float factor = poison_of(ring);
    Eight v;
    load8(table + static_cast<std::size_t>(token) * s.padded_cols + c, v);
#pragma unroll
    for (float& x : v) x *= factor;
    round_results<T>(round, v);
    store8(out + static_cast<std::size_t>(r) * s.padded_cols + c, v);
}

// A thread adds up twice 8 columns of a token's rows, half a row apart, in their order. Most tokens occur once or twice: the
// loads of four rows at a time are for those that occur often. Few registers a thread: many threads are resident.
template <class T>
__global__ void __launch_bounds__(kThreadsOfBlock, 10)
    gather_backward_kernel(TokenRing ring, const T* dx, Shape s, const float* add, float* dtable) {
    constexpr int kOften = 4, kTwice = 2;
    wait_for_the_kernel_before();
    const int half = s.padded_cols / kTwice, eights = half / kThreadCols;
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const int token = static_cast<int>(i / eights), c = static_cast<int>(i % eights) * kThreadCols;
    if (token >= ring.vocabulary) return;
    const TokenBatchView batch = batch_of(ring);
    const float factor = poison_of(ring);
    Eight sum[kTwice] = {};
    const auto add_rows = [&]<int kRows>(int first, std::integral_constant<int, kRows>) {
        Packed<T> raw[kRows][kTwice];
#pragma unroll
        for (int k = 0; k < kRows; ++k) {
            const T* const row = dx + static_cast<std::size_t>(batch.order[first + k]) * s.padded_cols + c;
#pragma unroll
            for (int h = 0; h < kTwice; ++h) raw[k][h] = fetch8(row + h * half);
        }
#pragma unroll
        for (int k = 0; k < kRows; ++k)
#pragma unroll
            for (int h = 0; h < kTwice; ++h) {
                Eight v;
                unpack(raw[k][h], v);
#pragma unroll
                for (int j = 0; j < kThreadCols; ++j) sum[h][j] += v[j] * factor;
            }
    };
    int first = batch.starts[token];
    const int end = batch.starts[token + 1];
    for (; first + kOften <= end; first += kOften) add_rows(first, std::integral_constant<int, kOften>());
    for (; first < end; ++first) add_rows(first, std::integral_constant<int, 1>());
    const std::size_t at = static_cast<std::size_t>(token) * s.padded_cols + c;
#pragma unroll
    for (int h = 0; h < kTwice; ++h) {
        if (add) {
            Eight v;
            load8(add + at + h * half, v);
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) sum[h][j] += v[j];
        }
        store8(dtable + at + h * half, sum[h]);
    }
}

dim3 blocks_for(long long rows, int cols) {
    const long long threads = rows * (cols / kThreadCols);
    return dim3(static_cast<unsigned>((threads + kThreadsOfBlock - 1) / kThreadsOfBlock));
}

}  // namespace

void gather(const TokenRing& batch, const float* table, Shape shape, Element element, bool round, void* out,
            cudaStream_t stream) {
    with_type(element, [&](auto* type) {
        using T = std::remove_cv_t<std::remove_pointer_t<decltype(type)>>;
        launch("gather", gather_kernel<T>, blocks_for(shape.rows, shape.padded_cols), kThreadsOfBlock, stream,
               batch, table, shape, round, static_cast<T*>(out));
    });
}

void gather_backward(const TokenRing& batch, const void* dx, Element element, Shape shape, const float* add,
                     float* dtable, cudaStream_t stream) {
    with_type(element, [&](auto* type) {
        using T = std::remove_cv_t<std::remove_pointer_t<decltype(type)>>;
        launch("gather_backward", gather_backward_kernel<T>,
               blocks_for(batch.vocabulary, shape.padded_cols / 2), kThreadsOfBlock, stream, batch,
               static_cast<const T*>(dx), shape, add, dtable);
    });
}

}  // namespace fp8lab::cuda
