// Where the values of every tensor come from.
#include "kernels/transformer/arm.h"

namespace fp8lab::cuda {

TokenRing TransformerArm::tokens(const ArmState* arm) const {
    TokenRing ring;
    ring.base = rings_.tokens;
    ring.rows = rows_;
    ring.vocabulary = static_cast<int>(shape_.vocabulary);
    ring.slots = rings_.data_slots;
    ring.inputs = rings_.inputs;
    ring.input_slots = rings_.input_slots;
    ring.arm = arm;
    ring.parts = evaluates_ ? 1 : place_.count;  // every rank evaluates all
    return ring;
}

TokenLossSource TransformerArm::loss_source(const ArmState* arm) const {
    return {logits_.get(), out_, tokens(arm), row_stats_.get(), rounds()};
}

GateSource TransformerArm::gate_source(const Block& block) const {
    return {block.gates.get(), out_, recipe_.act == SwigluForm::clamp ? GateKind::clamp : GateKind::swiglu,
            rounds(), block.channel_scales.get()};
}

Rotary TransformerArm::rotary() const {
    return {cos_.get(), sin_.get(), static_cast<int>(shape_.context), static_cast<int>(shape_.head_size()),
            static_cast<int>(shape_.d + shape_.key_cols())};
}

CudaArm::Launch TransformerArm::norm_source(const Norm& norm, Shape shape, cudaStream_t stream) const {
    const NormSource source{norm.stream.get(), out_, norm.inverse_rms.get(), norm.gain->value.get(),
                            rounds()};
    return [=](const CastTarget& target, Pass pass) { cast_norm(source, shape, target, pass, stream); };
}

void TransformerArm::set_sources(Block& block) {
    Block* const b = &block;
    sources_[b->qkv.x.id.index] = [this, b](const ArmState*, cudaStream_t stream) {
        return norm_source(b->norm1, b->qkv.x.shape, stream);
    };
    sources_[b->gate_up.x.id.index] = [this, b](const ArmState*, cudaStream_t stream) {
        return norm_source(b->norm2, b->gate_up.x.shape, stream);
    };
    sources_[b->down.x.id.index] = [this, b](const ArmState*, cudaStream_t stream) -> Launch {
        return [source = gate_source(*b), shape = b->down.x.shape, stream](
                   const CastTarget& target, Pass pass) { cast_gate(source, shape, target, pass, stream); };
    };
    sources_[b->gate_up.dy.id.index] = [this, b](const ArmState*, cudaStream_t stream) -> Launch {
        const GateSource gate = gate_source(*b);
        const GateSlopeSource source{b->da.get(), gate.gate_up, out_,
                                     gate.kind,   rounds(),     gate.channel_scales};
        return [source, shape = b->gate_up.dy.shape, stream](const CastTarget& target, Pass pass) {
            cast_gate_slope(source, shape, target, pass, stream);
        };
    };
    if (!b->qkv.dy.in_place())
        sources_[b->qkv.dy.id.index] = [this, b](const ArmState*, cudaStream_t stream) -> Launch {
            const RotatedBackSource source{b->dqkv.get(), out_, rotary(), rounds()};
            return [source, shape = b->qkv.dy.shape, stream](const CastTarget& target, Pass pass) {
                cast_rotated_back(source, shape, target, pass, stream);
            };
        };
    if (b->scaled_down.size() == 0) return;
    sources_[b->down.w.id.index] = [b](const ArmState*, cudaStream_t stream) -> Launch {
        return [values = b->scaled_down.get(), shape = b->down.w.shape, stream](const CastTarget& target,
                                                                                Pass pass) {
            cast_matrix(values, Element::f32, shape, target, pass, stream);
        };
    };
}

CudaArm::Launch TransformerArm::source_of(const Slot& slot, const ArmState* arm, cudaStream_t stream, When) {
    return sources_[slot.id.index](arm, stream);
}

void TransformerArm::cast_now(Slot& slot, const StepContext& step) {
    cast(slot, step, source_of(slot, step.arm, step.main, When::now));
}

// What the norm before it has not cast.
void TransformerArm::cast_unless_done(Slot& slot, const StepContext& step) {
    if (!cast_with_norm(&slot, step)) return cast_now(slot, step);
    if (slot.other) cast_side(*slot.other, step, source_of(slot, step.arm, step.main, When::now));
}

// The cast that the norm's kernel takes along, where it can: the scale is known, and there are no statistics.
std::optional<CastTarget> TransformerArm::cast_with_norm(const Slot* reader, const StepContext& step) const {
    if (!reader || !reader->of_norm || !reader->cast || reader->engine == Engine::emulated ||
        step.with_stats || reader->scaling != ScaleMode::tensor || scaled_from_itself(*reader))
        return std::nullopt;
    const CastTarget target = target_of(*reader, false);
    if (!casts_with_norm(out_, target.element, reader->shape)) return std::nullopt;
    return target;
}

}  // namespace fp8lab::cuda
