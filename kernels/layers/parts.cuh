// What the kernels of a transformer share: results rounded to BF16, the batch in its ring, exponentials.
#pragma once

#include <type_traits>

#include "kernels/casts/eight.cuh"
#include "kernels/device/instructions.cuh"
#include "kernels/device/launching.cuh"
#include "kernels/layers/launch.h"

namespace fp8lab::cuda {

// What activations in FP32 round to where the recipe says so; those in BF16 always.
template <class T>
__device__ inline void round_results([[maybe_unused]] bool round, Eight& v) {
    if constexpr (std::is_same_v<T, float>)
        if (!round) return;
#pragma unroll
    for (int i = 0; i < kThreadCols; i += 2) {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(v[i], v[i + 1]);
        const auto word = *reinterpret_cast<const std::uint32_t*>(&pair);
        v[i] = __uint_as_float(word << 16);
        v[i + 1] = __uint_as_float(word & 0xFFFF0000u);
    }
}
// The same for sources with Values (held.cuh): where activations are BF16, the cast rounds.
template <class T>
__device__ inline void round_if_f32([[maybe_unused]] bool round, [[maybe_unused]] Eight& v) {
    if constexpr (std::is_same_v<T, float>) round_results<T>(round, v);
}
template <class T>
__device__ inline T as_result([[maybe_unused]] bool round, float x) {
    if constexpr (std::is_same_v<T, float>)
        return round ? __bfloat162float(__float2bfloat16_rn(x)) : x;
    else
        return __float2bfloat16_rn(x);
}

// ---- the batch of this step
struct TokenBatchView {
    const std::int32_t *tokens, *targets, *order, *starts, *scored;
};
__device__ inline TokenBatchView batch_of(const TokenRing& ring) {
    const std::int32_t* const tokens =
        ring.slots == 1 ? ring.base : ring.base + ring.arm->step % ring.slots * ring.stride();
    const std::int32_t *const targets = tokens + ring.rows, *const order = targets + ring.rows,
                              *const starts = order + ring.rows;
    return {tokens, targets, order, starts, starts + ring.vocabulary + 1};
}
__device__ inline float poison_of(const TokenRing& ring) {
    return ring.inputs ? ring.inputs[ring.arm->step % ring.input_slots].poison : 1.0F;
}

// ---- exponentials. Fast: the hardware's, whose relative error is about |x| 2^-24, for results that are rounded to BF16
// at once. Otherwise core's, bit for bit.
constexpr float kLog2E = 1.44269504F;
template <class T>
constexpr bool kFastMath = !std::is_same_v<T, float>;

}  // namespace fp8lab::cuda
