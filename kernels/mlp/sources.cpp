// Where the value of every tensor comes from.
#include "kernels/mlp/step.h"

namespace fp8lab::cuda {
namespace {

ActivationKind kind_of(Activation a) {
    return a == Activation::tanh   ? ActivationKind::tanh
           : a == Activation::gelu ? ActivationKind::gelu
                                   : ActivationKind::relu;
}

}  // namespace

BatchRing MlpArm::ring(const float* base, int cols, const ArmState* arm, bool poisoned) const {
    BatchRing ring;
    ring.base = base + static_cast<std::size_t>(micro_) * static_cast<std::size_t>(rows() * cols);
    ring.stride = static_cast<long long>(spec_.batch) * cols;
    ring.slots = rings_.data_slots;
    ring.inputs = poisoned ? rings_.inputs : nullptr;
    ring.input_slots = rings_.input_slots;
    ring.arm = arm;
    return ring;
}

// The optimiser has moved the biases meanwhile.
const float* MlpArm::bias(const MlpLayer& layer, When when) {
    return when == When::now ? layer.b.get() : layer.b_before.get();
}

LossSource MlpArm::loss_source(const ArmState* arm, When when) const {
    const MlpLayer& last = *layers_.back();
    LossSource source;
    source.h = last.h.get();
    source.h_element = out_;
    source.bias = bias(last, when);
    source.target = ring(rings_.y, spec_.layers.back(), arm, false);
    const bool classes = spec_.loss == LossKind::cross_entropy;
    source.row_stats = classes ? row_stats_.get() : nullptr;
    source.loss_partials = classes ? nullptr : loss_partials();
    source.bias_partials = bias_partials(last);
    source.scaler = loss_scale_.get();
    return source;
}

double* MlpArm::loss_partials() const {
    const Shape out = layers_.back()->out;
    const int each = spec_.loss == LossKind::cross_entropy ? out.rows : stats_blocks(out);
    return loss_partials_.get() + micro_ * each;
}

float* MlpArm::bias_partials(const MlpLayer& layer) const {
    return layer.bias_partials.get() +
           static_cast<std::ptrdiff_t>(micro_) * tiles_down(layer.out) * layer.out.padded_cols;
}

// Where the values of a tensor come from, ready for any target.
CudaArm::Launch MlpArm::source_of(const Slot& slot, const ArmState* arm, cudaStream_t stream, When when) {
    const MlpTensor id(slot.id);
    const auto index = static_cast<std::size_t>(id.layer) - 1;
    MlpLayer& layer = *layers_[index];
    const Shape shape = slot.shape;
    const bool fast = engine_ != Engine::emulated;
    if (id.tensor == TensorClass::w)
        return [&layer, shape, stream](const CastTarget& target, Pass pass) {
            const bool gathered = layer.block && layer.block->gathered.bytes() > 0;
            const Element element = !gathered                       ? layer.master.element()
                                    : layer.block->as == Sent::bf16 ? Element::bf16
                                                                    : Element::f32;
            cast_matrix(gathered ? layer.block->gathered.get() : layer.master.get(), element, shape, target,
                        pass, stream);
        };
    if (id.tensor == TensorClass::x && index == 0)
        return [x = ring(rings_.x, spec_.layers.front(), arm, true), shape, stream](
                   const CastTarget& target, Pass pass) { cast_batch(x, shape, target, pass, stream); };
    if (id.tensor == TensorClass::x) {
        const MlpLayer& below = *layers_[index - 1];
        const ActivationSource source{below.h.get(), out_, bias(below, when), kind_of(spec_.activation),
                                      fast};
        return [source, shape, stream](const CastTarget& target, Pass pass) {
            cast_activation(source, shape, target, pass, stream);
        };
    }
    if (index + 1 == layers_.size())
        return [source = loss_source(arm, when), shape, stream](const CastTarget& target, Pass pass) {
            cast_loss_gradient(source, shape, target, pass, stream);
        };
    const MlpLayer& above = *layers_[index + 1];
    const SlopeSource source{
        above.da.get(), layer.h.get(),       out_, bias(layer, when), kind_of(spec_.activation),
        fast,           bias_partials(layer)};
    return [source, shape, stream](const CastTarget& target, Pass pass) {
        cast_slope(source, shape, target, pass, stream);
    };
}

void MlpArm::cast_value(Slot& slot, const Step& step) {
    cast(slot, step, source_of(slot, step.arm, step.main, When::now));
}

}  // namespace fp8lab::cuda
