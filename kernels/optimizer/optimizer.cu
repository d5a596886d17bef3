// Weights and biases.
#include "kernels/optimizer/optimizer.cuh"

namespace fp8lab::cuda {
namespace {

template <class T, int kRows>
struct StoredGradient {
    using Raw = Packed<T>;
    static constexpr int kAhead = kRows;
    const T* g;
    __device__ void prepare() {}
    __device__ Raw fetch(int r, int c, Shape s) const {
        return fetch8(g + static_cast<std::size_t>(r) * s.padded_cols + c);
    }
    __device__ void values(const Raw& raw, int, int, Eight& v) const { unpack(raw, v); }
};

// A block takes kBiasesOfBlock biases, kBiasSums threads each.
constexpr int kBiasesOfBlock = 32;
__global__ void __launch_bounds__(kBiasesOfBlock* kBiasSums)
    bias_kernel(BiasUpdates updates, const StepInput* inputs, int slots, const ArmState* arm,
                std::int32_t* finite, AdamWConstants adamw, const float* gradient_factor) {
    __shared__ float sums[kBiasSums][kBiasesOfBlock];
    wait_for_the_kernel_before();
    const BiasUpdate& u = updates.layer[blockIdx.y];
    const int lane = static_cast<int>(threadIdx.x) % kBiasesOfBlock,
              part = static_cast<int>(threadIdx.x) / kBiasesOfBlock,
              i = static_cast<int>(blockIdx.x) * kBiasesOfBlock + lane;
    float sum = 0;
#pragma unroll 8
    for (int tile = part; tile < (i < u.count ? u.tiles : 0); tile += kBiasSums)
        sum += u.partials[static_cast<std::size_t>(tile) * u.padded + i];
    sums[part][lane] = sum;
    __syncthreads();
    if (part > 0 || i >= u.count) return;
    float g = 0;
#pragma unroll
    for (int p = 0; p < kBiasSums; ++p) g += sums[p][lane];
    u.db[i] = g;
    u.before[i] = u.b[i];
    if (!arm->alive) return;
    const Factors factors = factors_of(inputs, slots, arm, u.m != nullptr, gradient_factor);
    float m = factors.adamw ? u.m[i] : 0, v = factors.adamw ? u.v[i] : 0;
    const float b = updated(factors, adamw, u.b[i], g, m, v);
    u.b[i] = b;
    if (factors.adamw) u.m[i] = m, u.v[i] = v;
    if (!isfinite(b)) *finite = 0;
}

__global__ void finish_step_kernel(const std::int32_t* finite, StepResult* records, ArmState* arm,
                                   ArmState* all) {
    wait_for_the_kernel_before();
    const ArmState now{arm->step, *finite == 0 ? 0 : arm->alive};
    records[now.step % kRecordSlots].alive = now.alive;
    if (!all)
        arm[1].alive = now.alive;
    else
        for (int i = 0; i < kStepsPerLaunch; ++i) all[i] = {now.step + 1 + i, now.alive};
}

// Of weights in FP32. One row ahead where gradients are FP32 and the payload is FP8: more blocks at once, and a step of the
// large layer that is 1 % faster (one H200, CUDA 13.0, 2026-11-24).
template <class G>
void update_wide(const UpdateSource& source, Shape shape, const CastTarget& target, cudaStream_t stream) {
    using TwoRows = Update<StoredGradient<G, 2>>;
    using ForFp8 = Update<StoredGradient<G, std::is_same_v<G, float> ? 1 : 2>>;
    const auto* const g = static_cast<const G*>(source.g);
    const TileTarget to = tile_target(target);
    if (target.scaling != ScaleMode::tensor || target.element == Element::e5m2)
        throw Error(ErrorKind::backend, "update of weights", "weights are cast to E4M3 with one scale");
    if (target.element == Element::e4m3)
        launch_payload<ForFp8, ToFp8<__NV_E4M3>>({source, {g}}, shape, to, stream);
    else if (target.element == Element::bf16)
        launch_payload<TwoRows, ToBf16>({source, {g}}, shape, to, stream);
    else
        launch_tiles<TwoRows, ToF32, Gather::nothing>({source, {g}}, shape, to, stream);
}

}  // namespace

void update_weights(const UpdateSource& source, Shape shape, const CastTarget& target, cudaStream_t stream) {
    using T = __nv_bfloat16;
    if (source.element == Element::f32)
        return (source.g_element == Element::bf16 ? update_wide<T> : update_wide<float>)(source, shape,
                                                                                         target, stream);
    if (target.element != Element::bf16 || source.g_element != Element::bf16)
        throw Error(ErrorKind::backend, "update of weights",
                    "weights in BF16 have gradients in BF16 and are cast to nothing else");
    // One row ahead: four blocks a multiprocessor. At the clocks of a step (its GEMMs are at the power limit) that is
    // faster than four rows ahead in two blocks.
    Update<StoredGradient<T, 1>, T> update{source, {static_cast<const T*>(source.g)}};
    launch_payload<decltype(update), ToBf16>(update, shape, tile_target(target), stream);
}

void update_biases(const BiasUpdates& updates, const StepInput* inputs, int input_slots, const ArmState* arm,
                   std::int32_t* finite, cudaStream_t stream, const AdamW& adamw,
                   const float* gradient_factor) {
    int widest = 1;
    for (int l = 0; l < updates.layers; ++l)
        widest = updates.layer[l].count > widest ? updates.layer[l].count : widest;
    const dim3 grid(static_cast<unsigned>((widest + kBiasesOfBlock - 1) / kBiasesOfBlock),
                    static_cast<unsigned>(updates.layers));
    launch("update_biases", bias_kernel, grid, kBiasesOfBlock * kBiasSums, stream, updates, inputs,
           input_slots, arm, finite, constants_of(adamw), gradient_factor);
}

void finish_step(const std::int32_t* finite, StepResult* records, ArmState* arm, ArmState* all,
                 cudaStream_t stream) {
    launch("finish_step", finish_step_kernel, dim3(1), 1, stream, finite, records, arm, all);
}

}  // namespace fp8lab::cuda
