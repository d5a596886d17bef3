#include "kernels/bench/cases.h"

#include <cmath>

#include "core/nn/loss.h"
#include "core/nn/ops/activation.h"
#include "core/nn/optimizer.h"

namespace fp8lab::cuda {
namespace {

using Values = std::vector<float>;

// ---- references
Values first_input(CaseValues& values, Shape) { return values.matrices[0]; }

// h + bias.
Values biased(const CaseValues& values, Shape s) {
    Values z = values.matrices[0];
    const auto cols = static_cast<std::size_t>(s.cols);
    for (std::size_t i = 0; i < z.size(); ++i) z[i] += values.bias[i % cols];
    return z;
}

template <Activation kKind>
Values activated(CaseValues& values, Shape s) {
    const Values z = biased(values, s);
    Values value(z.size()), slope(z.size());
    activate<float>(kKind, z, value, slope);
    return value;
}

// Input 0 is h, input 1 da.
template <Activation kKind>
Values sloped(CaseValues& values, Shape s) {
    const Values z = biased(values, s);
    Values value(z.size()), slope(z.size());
    activate<float>(kKind, z, value, slope);
    for (std::size_t i = 0; i < slope.size(); ++i) slope[i] *= values.matrices[1][i];
    return slope;
}

Values loss_gradient(CaseValues& values, Shape s) {
    const auto rows = static_cast<std::size_t>(s.rows), cols = static_cast<std::size_t>(s.cols);
    Matrix<float> y(rows, cols), target(rows, cols), dy;
    y.values = biased(values, s);
    target.values = values.matrices[1];
    loss_and_gradient(LossKind::mse, y, target, dy);
    return dy.values;
}

// Inputs w, g, m, v.
template <OptimizerKind kKind>
Values updated(CaseValues& values, Shape) {
    auto& [w, g, m, v] = values.matrices;
    Moments moments{m, v};
    const OptimizerStep how{kKind, kCaseRate, kCaseDecay, kCaseStep};
    update(how, w, g, moments);
    if (kKind == OptimizerKind::adamw) m = moments.m, v = moments.v;
    return w;
}

// The same with everything in BF16: the moments are updated in place, the new weights are the payload.
Values updated_in_bf16(CaseValues& values, Shape s) {
    const Values before = values.matrices[0], w = updated<OptimizerKind::adamw>(values, s);
    values.matrices[0] = before;
    for (const std::size_t moment : {2, 3}) {
        Values& m = values.matrices[moment];
        quantize(find_format("bf16"), m, m, {.overflow = Overflow::nonsaturate});
    }
    return w;
}

// ---- launches
template <Element kElement>
void matrix(const CaseMemory& memory, Shape shape, const CastTarget& target, Pass pass, cudaStream_t stream) {
    cast_matrix(memory.matrices[0], kElement, shape, target, pass, stream);
}
void batch(const CaseMemory& memory, Shape shape, const CastTarget& target, Pass pass, cudaStream_t stream) {
    BatchRing ring;
    ring.base = static_cast<const float*>(memory.matrices[0]);
    ring.arm = memory.arm;
    cast_batch(ring, shape, target, pass, stream);
}
template <Element kElement>
void matrix_to_mx(const CaseMemory& memory, Shape shape, const CastTarget& target, Pass,
                  cudaStream_t stream) {
    cast_matrix_to_mx(memory.matrices[0], kElement, shape, target, stream);
}
template <ActivationKind kKind, bool kFast>
void activation(const CaseMemory& memory, Shape shape, const CastTarget& target, Pass pass,
                cudaStream_t stream) {
    cast_activation({memory.matrices[0], Element::bf16, memory.bias, kKind, kFast}, shape, target, pass,
                    stream);
}
template <ActivationKind kKind, bool kFast>
void slope(const CaseMemory& memory, Shape shape, const CastTarget& target, Pass pass, cudaStream_t stream) {
    cast_slope({memory.matrices[1], memory.matrices[0], Element::bf16, memory.bias, kKind, kFast,
                memory.bias_partials},
               shape, target, pass, stream);
}
void loss(const CaseMemory& memory, Shape shape, const CastTarget& target, Pass pass, cudaStream_t stream) {
    LossSource source;
    source.h = memory.matrices[0];
    source.bias = memory.bias;
    source.target.base = static_cast<const float*>(memory.matrices[1]);
    source.target.arm = memory.arm;
    source.loss_partials = memory.loss_partials;
    source.bias_partials = memory.bias_partials;
    cast_loss_gradient(source, shape, target, pass, stream);
}
template <bool kAdamW, Element kElement = Element::f32, Element kGradient = kElement>
void optimizer(const CaseMemory& memory, Shape shape, const CastTarget& target, Pass, cudaStream_t stream) {
    const auto& at = memory.matrices;
    update_weights({at[0],
                    kAdamW ? at[2] : nullptr,
                    kAdamW ? at[3] : nullptr,
                    at[1],
                    kElement,
                    kGradient,
                    memory.input,
                    1,
                    memory.arm,
                    memory.finite,
                    {}},
                   shape, target, stream);
}

constexpr Element e5m2 = Element::e5m2, bf16 = Element::bf16, f32 = Element::f32;
constexpr ActivationKind kGelu = ActivationKind::gelu, kRelu = ActivationKind::relu,
                         kTanh = ActivationKind::tanh;
constexpr int kW = 4, kWmv = 12;

constexpr KernelCase kCases[] = {
    {.name = "amax",
     .inputs = {bf16},
     .transposed = false,
     .stores = false,
     .launch = matrix<bf16>,
     .reference = first_input},
    {.name = "cast", .inputs = {bf16}, .transposed = false, .launch = matrix<bf16>, .reference = first_input},
    {.name = "cast + transpose", .inputs = {bf16}, .launch = matrix<bf16>, .reference = first_input},
    {.name = "cast + transpose + statistics",
     .inputs = {bf16},
     .launch = matrix<bf16>,
     .reference = first_input,
     .statistics = true},
    {.name = "cast of FP32 + transpose",
     .inputs = {f32},
     .payload = e5m2,
     .launch = matrix<f32>,
     .reference = first_input},
    {.name = "batch: cast of FP32 + transpose",
     .inputs = {f32},
     .unpadded = 0,
     .launch = batch,
     .reference = first_input},
    {.name = "batch: FP32 to BF16",
     .inputs = {f32},
     .payload = bf16,
     .unpadded = 0,
     .transposed = false,
     .launch = batch,
     .reference = first_input},
    {.name = "FP32 to BF16",
     .inputs = {f32},
     .payload = bf16,
     .transposed = false,
     .launch = matrix<f32>,
     .reference = first_input},
    {.name = "GELU + cast + transpose",
     .inputs = {bf16},
     .agreement = Agreement::fast,
     .launch = activation<kGelu, true>,
     .reference = activated<Activation::gelu>},
    {.name = "GELU (exact tanh) + cast + transpose",
     .inputs = {bf16},
     .agreement = Agreement::rounded,
     .launch = activation<kGelu, false>,
     .reference = activated<Activation::gelu>},
    {.name = "GELU to BF16",
     .inputs = {bf16},
     .payload = bf16,
     .transposed = false,
     .agreement = Agreement::fast,
     .launch = activation<kGelu, true>,
     .reference = activated<Activation::gelu>},
    {.name = "tanh + cast + transpose",
     .inputs = {bf16},
     .agreement = Agreement::fast,
     .launch = activation<kTanh, true>,
     .reference = activated<Activation::tanh>},
    {.name = "ReLU + cast + transpose",
     .inputs = {bf16},
     .launch = activation<kRelu, true>,
     .reference = activated<Activation::relu>},
    {.name = "GELU' + dbias + cast + transpose",
     .inputs = {bf16, bf16},
     .payload = e5m2,
     .agreement = Agreement::fast,
     .launch = slope<kGelu, true>,
     .reference = sloped<Activation::gelu>},
    {.name = "GELU' (exact tanh) + dbias + cast + transpose",
     .inputs = {bf16, bf16},
     .payload = e5m2,
     .agreement = Agreement::rounded,
     .launch = slope<kGelu, false>,
     .reference = sloped<Activation::gelu>},
    {.name = "GELU' + dbias to BF16",
     .inputs = {bf16, bf16},
     .payload = bf16,
     .transposed = false,
     .agreement = Agreement::fast,
     .launch = slope<kGelu, true>,
     .reference = sloped<Activation::gelu>},
    {.name = "ReLU' + dbias + cast + transpose",
     .inputs = {bf16, bf16},
     .payload = e5m2,
     .launch = slope<kRelu, true>,
     .reference = sloped<Activation::relu>},
    {.name = "loss + dy + dbias + cast + transpose",
     .inputs = {bf16, f32},
     .payload = e5m2,
     .unpadded = 1,
     .launch = loss,
     .reference = loss_gradient},
    {.name = "loss + dy + dbias to BF16",
     .inputs = {bf16, f32},
     .payload = bf16,
     .unpadded = 1,
     .transposed = false,
     .launch = loss,
     .reference = loss_gradient},
    {.name = "AdamW + cast + transpose",
     .inputs = {f32, f32, f32, f32},
     .updated_bytes = kWmv,
     .launch = optimizer<true>,
     .reference = updated<OptimizerKind::adamw>},
    {.name = "AdamW + cast",
     .inputs = {f32, f32, f32, f32},
     .transposed = false,
     .updated_bytes = kWmv,
     .launch = optimizer<true>,
     .reference = updated<OptimizerKind::adamw>},
    {.name = "AdamW to BF16",
     .inputs = {f32, f32, f32, f32},
     .payload = bf16,
     .transposed = false,
     .updated_bytes = kWmv,
     .launch = optimizer<true>,
     .reference = updated<OptimizerKind::adamw>},
    {.name = "AdamW with dW in BF16 + cast + transpose",
     .inputs = {f32, bf16, f32, f32},
     .updated_bytes = kWmv,
     .launch = optimizer<true, f32, bf16>,
     .reference = updated<OptimizerKind::adamw>},
    {.name = "AdamW with dW in BF16 to BF16",
     .inputs = {f32, bf16, f32, f32},
     .payload = bf16,
     .transposed = false,
     .updated_bytes = kWmv,
     .launch = optimizer<true, f32, bf16>,
     .reference = updated<OptimizerKind::adamw>},
    {.name = "AdamW, all of it in BF16",
     .inputs = {bf16, bf16, bf16, bf16},
     .payload = bf16,
     .transposed = false,
     .updated_bytes = 2 * 2,
     .agreement = Agreement::rounded,
     .launch = optimizer<true, bf16>,
     .reference = updated_in_bf16},
    {.name = "SGD + cast + transpose",
     .inputs = {f32, f32},
     .updated_bytes = kW,
     .launch = optimizer<false>,
     .reference = updated<OptimizerKind::sgd>},
    {.name = "row cast + transpose",
     .inputs = {bf16},
     .scaling = ScaleMode::row,
     .launch = matrix<bf16>,
     .reference = first_input},
    {.name = "row cast of FP32 + transpose",
     .inputs = {f32},
     .payload = e5m2,
     .scaling = ScaleMode::row,
     .launch = matrix<f32>,
     .reference = first_input},
    {.name = "batch: row cast of FP32 + transpose",
     .inputs = {f32},
     .unpadded = 0,
     .scaling = ScaleMode::row,
     .launch = batch,
     .reference = first_input},
    {.name = "GELU + row cast + transpose",
     .inputs = {bf16},
     .agreement = Agreement::fast,
     .scaling = ScaleMode::row,
     .launch = activation<kGelu, true>,
     .reference = activated<Activation::gelu>},
    {.name = "ReLU' + dbias + row cast + transpose",
     .inputs = {bf16, bf16},
     .payload = e5m2,
     .scaling = ScaleMode::row,
     .launch = slope<kRelu, true>,
     .reference = sloped<Activation::relu>},
    {.name = "1x128 cast + transpose",
     .inputs = {bf16},
     .scaling = ScaleMode::block128,
     .launch = matrix<bf16>,
     .reference = first_input},
    {.name = "1x128 cast + transpose + statistics",
     .inputs = {bf16},
     .scaling = ScaleMode::block128,
     .launch = matrix<bf16>,
     .reference = first_input,
     .statistics = true},
    {.name = "batch: 1x128 cast of FP32 + transpose",
     .inputs = {f32},
     .unpadded = 0,
     .scaling = ScaleMode::block128,
     .launch = batch,
     .reference = first_input},
    {.name = "GELU + 1x128 cast + transpose",
     .inputs = {bf16},
     .agreement = Agreement::fast,
     .scaling = ScaleMode::block128,
     .launch = activation<kGelu, true>,
     .reference = activated<Activation::gelu>},
    {.name = "ReLU + 1x128 cast + transpose",
     .inputs = {bf16},
     .scaling = ScaleMode::block128,
     .launch = activation<kRelu, true>,
     .reference = activated<Activation::relu>},
    {.name = "GELU' + dbias + 1x128 cast + transpose",
     .inputs = {bf16, bf16},
     .agreement = Agreement::fast,
     .scaling = ScaleMode::block128,
     .launch = slope<kGelu, true>,
     .reference = sloped<Activation::gelu>},
    {.name = "ReLU' + dbias + 1x128 cast + transpose",
     .inputs = {bf16, bf16},
     .payload = e5m2,
     .scaling = ScaleMode::block128,
     .launch = slope<kRelu, true>,
     .reference = sloped<Activation::relu>},
    {.name = "loss + dy + dbias + 1x128 cast + transpose",
     .inputs = {bf16, f32},
     .unpadded = 1,
     .scaling = ScaleMode::block128,
     .launch = loss,
     .reference = loss_gradient},
    {.name = "128x128 cast of FP32 + transpose",
     .inputs = {f32},
     .scaling = ScaleMode::square128,
     .launch = matrix<f32>,
     .reference = first_input},
    {.name = "MX cast + transpose",
     .inputs = {bf16},
     .scaling = ScaleMode::block32,
     .launch = matrix_to_mx<bf16>,
     .reference = first_input},
    {.name = "MX cast of FP32 + transpose",
     .inputs = {f32},
     .payload = e5m2,
     .scaling = ScaleMode::block32,
     .launch = matrix_to_mx<f32>,
     .reference = first_input},
};

}  // namespace

StepInput case_input() {
    constexpr int kTime = kCaseStep + 1;
    StepInput input;
    input.lr = static_cast<float>(kCaseRate);
    input.rate = static_cast<float>(kCaseRate / (1 - std::pow(0.9, kTime)));
    input.spread = static_cast<float>(1 / std::sqrt(1 - std::pow(0.999, kTime)));
    input.decay = static_cast<float>(kCaseRate * kCaseDecay);
    return input;
}

void run(const KernelCase& kernel, const CaseMemory& memory, Shape shape, const CastTarget& target,
         cudaStream_t stream) {
    if (!kernel.stores || kernel.scaling == ScaleMode::row)
        kernel.launch(memory, shape, target, Pass::amax_only, stream);
    if (!kernel.stores) return;
    kernel.launch(memory, shape, target, Pass::cast, stream);
}

double bytes_per_element(const KernelCase& kernel) {
    const int reads = kernel.scaling == ScaleMode::row ? 2 : 1;
    double bytes = kernel.updated_bytes;
    for (const Element e : kernel.inputs) bytes += reads * bytes_of(e);
    if (kernel.scaling == ScaleMode::block128) bytes += 2.0 * sizeof(float) / kBlock;  // of scales
    if (kernel.scaling == ScaleMode::block32) bytes += 2.0 / kMxBlock;
    if (kernel.stores) bytes += bytes_of(kernel.payload) * (kernel.transposed ? 2 : 1);
    return bytes;
}

std::span<const KernelCase> kernel_cases() { return kCases; }

}  // namespace fp8lab::cuda
