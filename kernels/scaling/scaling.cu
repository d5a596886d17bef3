// Scales on the device: core/scaling/delayed.cpp's rules, one block per tensor.
#include "core/nn/train_spec.h"
#include "core/scaling/scale_rule.h"
#include "kernels/device/cast_sums.cuh"
#include "kernels/device/device.h"
#include "kernels/device/launch.h"
#include "kernels/device/launching.cuh"

namespace fp8lab::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void current_kernel(ScaleState* state, const ScaleControls* controls) {
    wait_for_the_kernel_before();
    state->scale = fp8lab::scale_from_amax(__uint_as_float(state->amax_bits), state->max_finite,
                                           controls->margin, 1.0F, controls->pow2 != 0);
}

__device__ float block_max(float value) {
    __shared__ float shared[kThreads / 32];
    for (int offset = 16; offset > 0; offset /= 2)
        value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFu, value, offset));
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    float largest = 0;
    for (int w = 0; w < kThreads / 32; ++w) largest = fmaxf(largest, shared[w]);
    return largest;
}

// By all threads of a block: the largest amax of the window, without the newest.
__device__ float largest_in(const float* ring, const ScaleState& state, const ScaleControls& c) {
    float largest = 0;
    // The newest is in no slot yet; the window is the newest and the history - 1 before it.
    for (int back = 1 + static_cast<int>(threadIdx.x); back < c.history; back += kThreads)
        largest = fmaxf(largest, ring[(state.history_at - back) & (kHistoryCapacity - 1)]);
    return block_max(largest);
}

// By one thread, in the order of core's.
__device__ float average_of(const float* ring, const ScaleState& state, const ScaleControls& c,
                            float latest) {
    float ema = 0;
    for (int back = c.history - 1; back > 0; --back)
        ema = fp8lab::ema_with(ema, ring[(state.history_at - back) & (kHistoryCapacity - 1)], c.ema_decay);
    return fp8lab::ema_with(ema, latest, c.ema_decay);
}

// By one thread: the newest amax goes into the history, and the scale is computed where it is due.
__device__ void roll(float* ring, ScaleState& state, const ScaleControls& c, float largest) {
    const float newest = __uint_as_float(state.amax_bits);
    // A NaN counts as Inf: fmaxf would drop it.
    const float latest = isnan(newest) ? __int_as_float(0x7F800000) : newest;
    const float amax = c.ema_decay > 0 ? average_of(ring, state, c, latest)
                       : c.most_recent ? latest
                                       : fmaxf(largest, latest);
    ring[state.history_at] = latest;
    state.history_at = (state.history_at + 1) & (kHistoryCapacity - 1);
    if (++state.scale_age < c.interval) return;
    state.scale = fp8lab::scale_from_amax(amax, state.max_finite, c.margin, state.scale, c.pow2 != 0);
    state.scale_age = 0;
}

__device__ float* clear_amaxes(float* history, const UpdatedTensors& updated) {
    const unsigned place = blockIdx.x;
    for (int i = static_cast<int>(threadIdx.x); i < updated.amax_count[place]; i += kThreads)
        updated.amaxes[place][i] = 0;
    return history + static_cast<std::size_t>(updated.tensor[place]) * kHistoryCapacity;
}

__device__ void record_amax(TensorResult& record, const ScaleState& state, bool in_parts) {
    record.amax_bits = in_parts ? max(record.amax_bits, state.amax_bits) : state.amax_bits;
}

__global__ void next_micro_batch_kernel(ScaleState* states, float* history, UpdatedTensors updated,
                                        const ScaleControls* controls, AmaxOf amax, TensorResult* records,
                                        const ArmState* arm) {
    wait_for_the_kernel_before();
    const int tensor = updated.tensor[blockIdx.x];
    float* const ring = clear_amaxes(history, updated);
    ScaleState& state = states[tensor];
    const bool rolls = state.delayed && amax == AmaxOf::each;
    const float largest = largest_in(ring, state, *controls);
    if (threadIdx.x != 0) return;
    record_amax(records[static_cast<std::size_t>(arm->step % kRecordSlots) * updated.of + tensor], state,
                updated.in_parts[blockIdx.x]);
    if (rolls) roll(ring, state, *controls, largest);
    if (!state.delayed || amax != AmaxOf::max) state.amax_bits = 0;
}

__global__ void update_kernel(ScaleState* states, float* history, UpdatedTensors updated,
                              const ScaleControls* controls, TensorResult* records, const ArmState* arm) {
    wait_for_the_kernel_before();
    const int tensor = updated.tensor[blockIdx.x];
    float* const ring = clear_amaxes(history, updated);
    ScaleState& state = states[tensor];
    const float largest = largest_in(ring, state, *controls);
    if (threadIdx.x != 0) return;
    TensorResult& record = records[static_cast<std::size_t>(arm->step % kRecordSlots) * updated.of + tensor];
    record.scale = state.scale_used;
    record_amax(record, state, updated.in_parts[blockIdx.x]);
    record.underflow = state.underflow;
    record.overflow = state.overflow;
    const double unknown = __longlong_as_double(0x7FF8000000000000LL);
    record.sums = {unknown, unknown, {unknown, unknown, unknown}, unknown};
    if (state.delayed) roll(ring, state, *controls, largest);
    state.amax_bits = 0;
    state.underflow = state.overflow = 0;
}

__global__ void truncate_kernel(const ScaleState* states, float* history, int keep) {
    wait_for_the_kernel_before();
    const ScaleState& state = states[blockIdx.x];
    float* const ring = history + static_cast<std::size_t>(blockIdx.x) * kHistoryCapacity;
    for (int back = keep + 1 + static_cast<int>(threadIdx.x); back <= kHistoryCapacity; back += kThreads)
        ring[(state.history_at - back) & (kHistoryCapacity - 1)] = 0;
}

__global__ void reduce_stats_kernel(const CastSums* partials, int count, TensorResult* records, int tensor,
                                    int tensors, const ArmState* arm) {
    wait_for_the_kernel_before();
    CastSums sum;
    for (int i = threadIdx.x; i < count; i += kThreads) {
        sum.signal += partials[i].signal;
        sum.noise += partials[i].noise;
        sum.mass += partials[i].mass;
        sum.fourth += partials[i].fourth;
    }
    TensorResult& record = records[static_cast<std::size_t>(arm->step % kRecordSlots) * tensors + tensor];
    store_cast_sums<kThreads>(sum, &record.sums);
}

template <class Word>
__global__ void amax_kernel(const Word* in, long long count, std::uint32_t* amax_bits) {
    wait_for_the_kernel_before();
    constexpr Word kMagnitude = static_cast<Word>(~(Word{1} << (sizeof(Word) * 8 - 1)));
    std::uint32_t largest = 0;
    const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)
        largest = max(largest, static_cast<std::uint32_t>(in[i] & kMagnitude));
    if (sizeof(Word) == 2) largest <<= 16;
    largest = __reduce_max_sync(0xFFFFFFFFu, largest);
    if (threadIdx.x % 32 == 0 && largest > 0) atomicMax(amax_bits, largest);
}

}  // namespace

void scale_from_amax(ScaleState* state, const ScaleControls* controls, cudaStream_t stream) {
    launch("scale_from_amax", current_kernel, dim3(1), 1, stream, state, controls);
}

void update_scales(ScaleState* states, float* history, const UpdatedTensors& updated,
                   const ScaleControls* controls, TensorResult* records, const ArmState* arm,
                   cudaStream_t stream) {
    if (updated.count == 0) return;
    launch("update_scales", update_kernel, dim3(static_cast<unsigned>(updated.count)), kThreads, stream,
           states, history, updated, controls, records, arm);
}

void next_micro_batch(ScaleState* states, float* history, const UpdatedTensors& updated,
                      const ScaleControls* controls, AmaxOf amax, TensorResult* records, const ArmState* arm,
                      cudaStream_t stream) {
    if (updated.count == 0) return;
    launch("next_micro_batch", next_micro_batch_kernel, dim3(static_cast<unsigned>(updated.count)), kThreads,
           stream, states, history, updated, controls, amax, records, arm);
}

void truncate_history(const ScaleState* states, float* history, int tensors, int keep, cudaStream_t stream) {
    launch("truncate_history", truncate_kernel, dim3(static_cast<unsigned>(tensors)), kThreads, stream,
           states, history, keep);
}

void reduce_stats(const CastSums* partials, int count, TensorResult* records, int tensor, int tensors,
                  const ArmState* arm, cudaStream_t stream) {
    launch("reduce_stats", reduce_stats_kernel, dim3(1), kThreads, stream, partials, count, records, tensor,
           tensors, arm);
}

void amax(const void* in, Element element, long long count, std::uint32_t* amax_bits, cudaStream_t stream) {
    constexpr long long kPerBlock = 256LL * 16;
    constexpr unsigned kMostBlocks = 132 * 8;
    const long long wanted = (count + kPerBlock - 1) / kPerBlock;
    const unsigned blocks =
        wanted < kMostBlocks ? static_cast<unsigned>(wanted > 0 ? wanted : 1) : kMostBlocks;
    if (element == Element::f32)
        launch("amax", amax_kernel<std::uint32_t>, dim3(blocks), kThreads, stream,
               static_cast<const std::uint32_t*>(in), count, amax_bits);
    else
        launch("amax", amax_kernel<std::uint16_t>, dim3(blocks), kThreads, stream,
               static_cast<const std::uint16_t*>(in), count, amax_bits);
}

}  // namespace fp8lab::cuda
