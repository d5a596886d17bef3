#include "kernels/casts/tile_pieces.cuh"
#include "kernels/optimizer/bias_sum.cuh"
#include "kernels/ranks/launch.h"

namespace fp8lab::cuda {
namespace {

constexpr int kValueThreads = 256;
static_assert(kMostRankValues < kValueThreads);

__global__ void pack_kernel(SharedAmaxes amaxes, const ArmState* arm, float* values) {
    wait_for_the_kernel_before();
    const int i = static_cast<int>(threadIdx.x);
    const int at = amaxes.first + i;
    if (i < amaxes.count)
        values[at] = values[amaxes.all + 1 + at] = __uint_as_float(amaxes.states[amaxes.index[i]].amax_bits);
    if (i == amaxes.count) values[amaxes.all] = arm->alive ? 0.0F : 1.0F;
}

__global__ void unpack_kernel(SharedAmaxes amaxes, const float* values, ArmState* arm) {
    wait_for_the_kernel_before();
    const int i = static_cast<int>(threadIdx.x);
    if (i < amaxes.count)
        amaxes.states[amaxes.index[i]].amax_bits = __float_as_uint(values[amaxes.first + i]);
    if (i == amaxes.count && values[amaxes.all] != 0) arm->alive = 0;
}

__global__ void own_kernel(SharedAmaxes amaxes, const float* values, TensorResult* records, int of,
                           const ArmState* arm) {
    wait_for_the_kernel_before();
    const int i = static_cast<int>(threadIdx.x);
    if (i < amaxes.count)
        records[static_cast<std::size_t>(arm->step % kRecordSlots) * of + amaxes.index[i]].amax_bits =
            __float_as_uint(values[amaxes.all + 1 + amaxes.first + i]);
}

__global__ void scale_inv_kernel(ScaleState* state) {
    wait_for_the_kernel_before();
    state->scale_used = state->scale;
    state->scale_inv = 1 / state->scale;
}

__global__ void __launch_bounds__(kBiasesOfBlock* kBiasSums) sum_kernel(BiasUpdates updates) {
    wait_for_the_kernel_before();
    const BiasUpdate& u = updates.layer[blockIdx.y];
    float g = 0;
    if (bias_gradient(u, g)) u.db[bias_of_thread()] = g;
}

__global__ void __launch_bounds__(kThreads)
    transpose_kernel(const std::uint8_t* in, Shape s, std::uint8_t* out) {
    __shared__ __align__(16) std::uint32_t transposed[kTileCols * kThreadsDown];
    wait_for_the_kernel_before();
    const int tx = static_cast<int>(threadIdx.x) % kThreadsAcross,
              ty = static_cast<int>(threadIdx.x) / kThreadsAcross;
    const int tile_r = static_cast<int>(blockIdx.y) * kTileRows,
              tile_c = static_cast<int>(blockIdx.x) * kTileCols;
    const int r0 = tile_r + ty * kThreadRows, c = tile_c + tx * kThreadCols;
    std::uint32_t low[kThreadRows] = {}, high[kThreadRows] = {}, words[kThreadCols];
    if (c < s.padded_cols && r0 < s.padded_rows)
#pragma unroll
        for (int row = 0; row < kThreadRows; ++row) {
            const uint2 eight =
                *reinterpret_cast<const uint2*>(in + static_cast<std::size_t>(r0 + row) * s.padded_cols + c);
            low[row] = eight.x, high[row] = eight.y;
        }
    transpose4(low, words);
    transpose4(high, words + 4);
    store_columns(out, words, s, tile_r, tile_c, transposed);
}

}  // namespace

void pack_amaxes(const SharedAmaxes& amaxes, const ArmState* arm, float* values, cudaStream_t stream) {
    launch("pack_amaxes", pack_kernel, dim3(1), kValueThreads, stream, amaxes, arm, values);
}

void unpack_amaxes(const SharedAmaxes& amaxes, const float* values, ArmState* arm, cudaStream_t stream) {
    launch("unpack_amaxes", unpack_kernel, dim3(1), kValueThreads, stream, amaxes, values, arm);
}

void record_own_amaxes(const SharedAmaxes& amaxes, const float* values, TensorResult* records, int of,
                       const ArmState* arm, cudaStream_t stream) {
    launch("record_own_amaxes", own_kernel, dim3(1), kValueThreads, stream, amaxes, values, records, of, arm);
}

void give_scale_inv(ScaleState* state, cudaStream_t stream) {
    launch("give_scale_inv", scale_inv_kernel, dim3(1), 1, stream, state);
}

void sum_biases(const BiasUpdates& updates, cudaStream_t stream) {
    launch("sum_biases", sum_kernel, bias_grid(updates), kBiasesOfBlock * kBiasSums, stream, updates);
}

void transpose_codes(const void* in, Shape shape, void* out, cudaStream_t stream) {
    const dim3 grid(static_cast<unsigned>(tiles_across(shape)), static_cast<unsigned>(tiles_down(shape)));
    launch("transpose_codes", transpose_kernel, grid, kThreads, stream, static_cast<const std::uint8_t*>(in),
           shape, static_cast<std::uint8_t*>(out));
}

}  // namespace fp8lab::cuda
