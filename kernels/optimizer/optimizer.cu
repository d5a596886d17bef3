// Weights and biases.
#include <algorithm>
#include <span>
#include <tuple>

#include "kernels/optimizer/bias_sum.cuh"
#include "kernels/optimizer/many_updates.cuh"

namespace fp8lab::cuda {
namespace {

__global__ void __launch_bounds__(kBiasesOfBlock* kBiasSums)
    bias_kernel(BiasUpdates updates, const StepInput* inputs, int slots, const ArmState* arm,
                std::int32_t* finite, AdamWConstants adamw, const float* gradient_factor) {
    wait_for_the_kernel_before();
    const BiasUpdate& u = updates.layer[blockIdx.y];
    float g = 0;
    if (!bias_gradient(u, g)) return;
    const int i = bias_of_thread();
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
                                   ArmState* all, const LossScale* scaler, MomentCounts* counts,
                                   MomentResult* moment_records) {
    wait_for_the_kernel_before();
    const bool alive = arm->alive || (scaler && scaler->skips);
    const ArmState now{arm->step, *finite == 0 ? 0 : alive};
    records[now.step % kRecordSlots].alive = now.alive;
    if (counts) {
        moment_records[now.step % kRecordSlots] = {*counts, now.alive && arm->alive};
        *counts = {};
    }
    if (!all)
        arm[1].alive = now.alive;
    else
        for (int i = 0; i < kStepsPerLaunch; ++i) all[i] = {now.step + 1 + i, now.alive};
}

// Of weights in FP32. One row ahead where gradients are FP32 and the payload is FP8: more blocks at once, and a step of the
// large layer that is 1 % faster (one H200, CUDA 13.0, 2026-11-24).
template <class G>
void update_wide(std::span<const WeightUpdate> updates, const Share& share, cudaStream_t stream) {
    using TwoRows = Update<StoredGradient<G, 2>>;
    using ForFp8 = Update<StoredGradient<G, std::is_same_v<G, float> ? 1 : 2>>;
    const CastTarget& target = updates.front().target;
    if (target.scaling != ScaleMode::tensor || target.element == Element::e5m2)
        throw Error(ErrorKind::backend, "update of weights", "weights are cast to E4M3 with one scale");
    if (target.element == Element::e4m3)
        launch_updates_to<ForFp8, ToFp8<__NV_E4M3>>(updates, share, stream);
    else if (target.element == Element::bf16)
        launch_updates_to<TwoRows, ToBf16>(updates, share, stream);
    else
        launch_updates<TwoRows, ToF32, Gather::nothing>(updates, share, stream);
}

void launch_alike(std::span<const WeightUpdate> updates, const Share& share, cudaStream_t stream) {
    using T = __nv_bfloat16;
    const auto& [source, shape, target] = updates.front();
    if (source.rounded.any()) return update_rounded(updates, share, stream);
    if (source.element == Element::f32)
        return (source.g_element == Element::bf16 ? update_wide<T> : update_wide<float>)(updates, share,
                                                                                         stream);
    if (target.element != Element::bf16 || source.g_element != Element::bf16)
        throw Error(ErrorKind::backend, "update of weights",
                    "weights in BF16 have gradients in BF16 and are cast to nothing else");
    // One row ahead: four blocks a multiprocessor. At the clocks of a step (its GEMMs are at the power limit) that is
    // faster than four rows ahead in two blocks.
    launch_updates_to<Update<StoredGradient<T, 1>, T>, ToBf16>(updates, share, stream);
}

bool alike(const WeightUpdate& a, const WeightUpdate& b) {
    const auto kind = [](const WeightUpdate& u) {
        const Rounded& kept = u.source.rounded;
        return std::tuple(u.source.element, u.source.g_element, u.target.element, u.target.scaling,
                          u.target.stats_partials == nullptr, kept.m.element, kept.v.element,
                          kept.m.stochastic, kept.v.stochastic, kept.weights);
    };
    return kind(a) == kind(b) && !has_groups_across_rows(a) && !has_groups_across_rows(b);
}

}  // namespace

unsigned tiles_of(std::span<const WeightUpdate> updates) {
    unsigned tiles = 0;
    for (const WeightUpdate& update : updates) tiles += tiles_of(update);
    return tiles;
}

void update_weights(std::span<const WeightUpdate> updates, TileRange tiles, unsigned blocks,
                    cudaStream_t stream) {
    while (!updates.empty() && tiles.last > 0) {
        std::size_t count = 1;
        while (count < updates.size() && count < kMostUpdatesAtOnce && alike(updates[0], updates[count]))
            ++count;
        const auto now = updates.first(count);
        updates = updates.subspan(count);
        const unsigned all = tiles_of(now);
        const TileRange some{std::min(tiles.first, all), std::min(tiles.last, all)};
        // Without tiles, an update is a part of the launch that has the first.
        const bool mine =
            has_groups_across_rows(now.front()) ? some.first == 0 && some.last > 0 : some.first < some.last;
        if (mine) launch_alike(now, {some, blocks}, stream);
        tiles = {tiles.first - some.first, tiles.last - some.last};
    }
}

void update_weights(const UpdateSource& source, Shape shape, const CastTarget& target, cudaStream_t stream) {
    const WeightUpdate one{source, shape, target};
    update_weights(std::span(&one, 1), {}, 0, stream);
}

void update_biases(const BiasUpdates& updates, const StepInput* inputs, int input_slots, const ArmState* arm,
                   std::int32_t* finite, cudaStream_t stream, const AdamW& adamw,
                   const float* gradient_factor) {
    launch("update_biases", bias_kernel, bias_grid(updates), kBiasesOfBlock * kBiasSums, stream, updates,
           inputs, input_slots, arm, finite, constants_of(adamw), gradient_factor);
}

void finish_step(const std::int32_t* finite, StepResult* records, ArmState* arm, ArmState* all,
                 cudaStream_t stream, const LossScale* scaler, MomentCounts* counts,
                 MomentResult* moment_records) {
    launch("finish_step", finish_step_kernel, dim3(1), 1, stream, finite, records, arm, all, scaler, counts,
           moment_records);
}

}  // namespace fp8lab::cuda
