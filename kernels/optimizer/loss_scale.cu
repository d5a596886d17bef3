// Loss scaling on the device: core/trainer/loss_scaler.cpp, operation by operation.
#include "kernels/optimizer/bias_sum.cuh"

namespace fp8lab::cuda {
namespace {

constexpr float kGrowth = 2, kBackoff = 0.5F;  // of torch.amp.GradScaler

template <class T>
__device__ bool is_finite(T bits);
template <>
__device__ bool is_finite(std::uint32_t bits) {
    return (bits & 0x7F800000u) != 0x7F800000u;
}
template <>
__device__ bool is_finite(std::uint16_t bits) {
    return (bits & 0x7F80u) != 0x7F80u;
}

// count words of four elements in FP32, or of eight in BF16.
template <class T>
__global__ void nonfinite_kernel(const uint4* values, long long count, LossScale* scaler) {
    wait_for_the_kernel_before();
    bool finite = true;
    const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
         i += stride) {
        const uint4 words = values[i];
        for (const std::uint32_t word : {words.x, words.y, words.z, words.w})
            finite = finite && is_finite(static_cast<T>(word)) &&
                     (sizeof(T) == 4 || is_finite(static_cast<T>(word >> 16)));
    }
    if (!finite) scaler->finite = 0;
}

__global__ void __launch_bounds__(kBiasesOfBlock* kBiasSums)
    nonfinite_biases_kernel(BiasUpdates updates, LossScale* scaler) {
    wait_for_the_kernel_before();
    float g = 0;
    if (bias_gradient(updates.layer[blockIdx.y], g) && !isfinite(g)) scaler->finite = 0;
}

__global__ void scale_kernel(LossScale* scaler, LossScaleRule rule, const StepInput* inputs, int slots,
                             LossScaleResult* records, ArmState* arm) {
    wait_for_the_kernel_before();
    LossScale s = *scaler;
    StepInput input = inputs[arm->step % slots];
    const float used = s.scale;
    s.factor = 1.0F / used / static_cast<float>(rule.micro_batches);
    s.skips = 0;
    if (arm->alive && !s.finite) {
        s.scale *= kBackoff;
        s.good = 0;
        ++s.skipped;
        s.skips = 1;
        arm->alive = 0;  // until finish_step()
    } else if (arm->alive && rule.growth_interval > 0 && ++s.good >= rule.growth_interval) {
        if (isfinite(s.scale * kGrowth)) s.scale *= kGrowth;
        s.good = 0;
    }
    if (s.skipped > 0) {  // these steps do not count
        const double t = arm->step - s.skipped + 1;
        input.rate = static_cast<float>(static_cast<double>(input.lr) / (1 - pow(rule.beta1, t)));
        input.spread = static_cast<float>(1 / sqrt(1 - pow(rule.beta2, t)));
    }
    s.input = input;
    s.finite = 1;
    *scaler = s;
    records[arm->step % kRecordSlots] = {used, s.skipped};
}

}  // namespace

void find_nonfinite(const void* gradient, Element element, long long count, LossScale* scaler,
                    cudaStream_t stream) {
    constexpr long long kPerBlock = 256LL * 4;
    constexpr long long kMostBlocks = 132 * 8;
    const long long words = count * bytes_of(element) / static_cast<long long>(sizeof(uint4));
    const auto blocks =
        static_cast<unsigned>(std::clamp((words + kPerBlock - 1) / kPerBlock, 1LL, kMostBlocks));
    const auto* const values = static_cast<const uint4*>(gradient);
    if (element == Element::f32)
        launch("find_nonfinite", nonfinite_kernel<std::uint32_t>, dim3(blocks), 256, stream, values, words,
               scaler);
    else
        launch("find_nonfinite", nonfinite_kernel<std::uint16_t>, dim3(blocks), 256, stream, values, words,
               scaler);
}

void find_nonfinite_biases(const BiasUpdates& updates, LossScale* scaler, cudaStream_t stream) {
    launch("find_nonfinite", nonfinite_biases_kernel, bias_grid(updates), kBiasesOfBlock * kBiasSums, stream,
           updates, scaler);
}

void update_loss_scale(LossScale* scaler, const LossScaleRule& rule, const StepInput* inputs, int input_slots,
                       LossScaleResult* records, ArmState* arm, cudaStream_t stream) {
    launch("update_loss_scale", scale_kernel, dim3(1), 1, stream, scaler, rule, inputs, input_slots, records,
           arm);
}

}  // namespace fp8lab::cuda
