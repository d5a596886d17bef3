// The casts of a step: where the value of every tensor comes from, and what the GEMMs read of it.
#include <limits>

#include "core/nn/streams.h"
#include "kernels/trainer/arm_step.h"

namespace fp8lab::cuda {
namespace {

ActivationKind kind_of(Activation a) {
    return a == Activation::tanh   ? ActivationKind::tanh
           : a == Activation::gelu ? ActivationKind::gelu
                                   : ActivationKind::relu;
}

// The order of the GEMMs: x and w serve fprop first, dy serves dgrad first, and wgrad where there is no
// dgrad.
Along first_along(MlpTensor id) {
    return id.tensor == TensorClass::dy && id.layer == 1 ? Along::rows : Along::cols;
}

}  // namespace

BatchRing CudaArm::ring(const float* base, int cols, const ArmState* arm, bool poisoned) const {
    BatchRing ring;
    ring.base = base;
    ring.stride = static_cast<long long>(spec_.batch) * cols;
    ring.slots = rings_.data_slots;
    ring.inputs = poisoned ? rings_.inputs : nullptr;
    ring.input_slots = rings_.input_slots;
    ring.arm = arm;
    return ring;
}

// The optimiser has moved the biases meanwhile.
const float* CudaArm::bias(const ArmLayer& layer, When when) {
    return when == When::now ? layer.b.get() : layer.b_before.get();
}

LossSource CudaArm::loss_source(const ArmState* arm, When when) const {
    const ArmLayer& last = *layers_.back();
    LossSource source;
    source.h = last.h.get();
    source.h_element = out_;
    source.bias = bias(last, when);
    source.target = ring(rings_.y, spec_.layers.back(), arm, false);
    const bool classes = spec_.loss == LossKind::cross_entropy;
    source.row_stats = classes ? row_stats_.get() : nullptr;
    source.loss_partials = classes ? nullptr : loss_partials_.get();
    source.bias_partials = last.bias_partials.get();
    return source;
}

// Where the values of a tensor come from, ready for any target.
CudaArm::Launch CudaArm::source_of(const Slot& slot, const ArmState* arm, cudaStream_t stream, When when) {
    const auto index = static_cast<std::size_t>(slot.id.layer) - 1;
    ArmLayer& layer = *layers_[index];
    const Shape shape = slot.shape;
    const bool fast = engine_ != Engine::emulated;
    if (slot.id.tensor == TensorClass::w)
        return [&layer, shape, stream](const CastTarget& target, Pass pass) {
            cast_matrix(layer.master.get(), layer.master.element(), shape, target, pass, stream);
        };
    if (slot.id.tensor == TensorClass::x && index == 0)
        return [x = ring(rings_.x, spec_.layers.front(), arm, true), shape, stream](
                   const CastTarget& target, Pass pass) { cast_batch(x, shape, target, pass, stream); };
    if (slot.id.tensor == TensorClass::x) {
        const ArmLayer& below = *layers_[index - 1];
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
    const ArmLayer& above = *layers_[index + 1];
    const SlopeSource source{
        above.da.get(),           layer.h.get(), out_, bias(layer, when), kind_of(spec_.activation), fast,
        layer.bias_partials.get()};
    return [source, shape, stream](const CastTarget& target, Pass pass) {
        cast_slope(source, shape, target, pass, stream);
    };
}

// Whether a pass for the amaxes comes before the cast: with one scale a tensor or a row. Stored weights
// (master=none) have a scale of their own; those of a block are found by the cast itself.
bool CudaArm::scaled_from_itself(const Slot& slot) const {
    const bool stored = slot.id.tensor == TensorClass::w && recipe_.master == MasterWeights::none;
    const bool one_scale = slot.plan.granularity == Granularity::tensor && !stored;
    return slot.plan.scaled && recipe_.scale == ScaleSource::current &&
           (one_scale || slot.scaling == ScaleMode::row);
}

// Otherwise the weights are cast for themselves, under scales of the step that reads them.
bool CudaArm::cast_by_optimiser(const Slot& weights) const {
    return engine_ != Engine::emulated && !scaled_from_itself(weights) &&
           weights.scaling == ScaleMode::tensor;
}

const float* CudaArm::scale_inv(const Slot& slot) const {
    return slot.scale_inv.size() > 0 ? slot.scale_inv.get() : &state(slot)->scale_inv;
}

// What a GEMM multiplies the first or second operand of a slot by.
const float* CudaArm::factors(const Slot& slot, bool second) const {
    if (slot.scaling == ScaleMode::tensor) return scale_inv(slot);
    const ScaleVectors vectors = slot.scales.vectors(controls_.get());
    return second ? vectors.columns : vectors.rows;
}

void CudaArm::cast(Slot& slot, const Step& step, const Launch& launch) {
    const auto keep_values = [&] {
        if (slot.id.tensor == TensorClass::w) return;  // the master weights are there
        CastTarget values;
        values.element = Element::f32;
        values.rows = slot.value.get();
        launch(values, Pass::cast);
    };
    if (engine_ == Engine::emulated) {
        keep_values();
        if (slot.cast) cast_emulated(slot, step);
        step.tell(Part::cast);
        return;
    }
    CastTarget target;
    target.element = operand_element(slot);
    target.rows = slot.first.get();
    target.columns = slot.second.get();
    target.state = state(slot);
    target.scale_inv = slot.scale_inv.get();
    target.scaled = slot.plan.scaled;
    target.stats_partials = step.with_stats ? slot.stats.get() : nullptr;
    target.scaling = slot.scaling;
    if (slot.scaling != ScaleMode::tensor) target.vectors = slot.scales.vectors(controls_.get());
    if (slot.scaling == ScaleMode::block32) {
        keep_values();
        cast_matrix_to_mx(slot.values, Element::f32, slot.shape, target, step.main);
        step.tell(Part::cast);
        return;
    }
    if (scaled_from_itself(slot)) {
        launch(target, Pass::amax_only);
        if (slot.scaling == ScaleMode::tensor) scale_from_amax(state(slot), controls_.get(), step.main);
    }
    launch(target, Pass::cast);
    step.tell(Part::cast);
}

EmulatedCast CudaArm::emulated(const Slot& slot, Along along) const {
    EmulatedCast how;
    how.plan = slot.plan;
    how.rows = slot.rotated && along == Along::rows ? slot.shape.padded_rows : slot.shape.rows;
    how.cols = slot.shape.cols;
    how.stride = slot.shape.padded_cols;
    how.along = along;
    how.seed = spec_.seed;
    how.layer = slot.id.layer;
    how.detail = static_cast<unsigned>(slot.id.tensor) * 2 + (along == Along::rows);
    how.controls = controls_.get();
    return how;
}

void CudaArm::cast_emulated(Slot& slot, const Step& step) {
    const Shape shape = slot.shape;
    if (scaled_from_itself(slot)) {
        const long long count = static_cast<long long>(shape.padded_rows) * shape.padded_cols;
        amax(slot.values, Element::f32, count, &state(slot)->amax_bits, step.main);
        scale_from_amax(state(slot), controls_.get(), step.main);
    }
    const auto run = [&](Along along, void* out, bool first) {
        const auto* in = static_cast<const float*>(slot.values);
        if (slot.rotated && along == Along::rows) {  // the padding of the batch is zeros
            auto* const turned = static_cast<float*>(rotated_.get());
            rotate(in, turned, shape.padded_rows, shape.cols, shape.padded_cols, along, te_signs(),
                   step.main);
            in = turned;
        }
        emulate_cast(emulated(slot, along), in, static_cast<float*>(out), state(slot), scratch_.get(),
                     first && step.with_stats ? slot.stats.get() : nullptr, first, step.arm, step.main);
    };
    run(first_along(slot.id), slot.first.get(), true);
    if (slot.has_second) run(Along::rows, slot.second.get(), false);
}

// Tensor cores store BF16 themselves; an emulated product is in FP32.
void CudaArm::round_emulated(void* product, Shape shape, OutType to, const Step& step) {
    if (engine_ != Engine::emulated || to == OutType::fp32) return;
    auto* const values = static_cast<float*>(product);
    round_to_bf16(values, values, static_cast<long long>(shape.padded_rows) * shape.padded_cols, step.main);
    step.tell(Part::cast);
}

void CudaArm::cast_value(Slot& slot, const Step& step) {
    cast(slot, step, source_of(slot, step.arm, step.main));
}

// master=none: the weights themselves live on an E4M3 grid, rounded as the recipe says.
void CudaArm::quantize_storage(ArmLayer& layer, Rounding rounding, const ArmState* arm, cudaStream_t stream) {
    EmulatedCast how;
    how.plan.format = &find_format("e4m3");
    how.plan.scaled = true;
    how.plan.rounding = rounding;
    how.rows = layer.w.shape.rows;
    how.cols = layer.w.shape.cols;
    how.stride = layer.w.shape.padded_cols;
    how.seed = spec_.seed;
    how.layer = layer.number;
    how.draw = Draw::update;
    auto* const weights = static_cast<float*>(layer.master.get());
    emulate_cast(how, weights, weights, state(layer.w), scratch_.get(), nullptr, false, arm, stream);
}

// Step `step` is done: its batch, h and da are still where they were, so that every tensor can be computed
// once more.
TensorView CudaArm::view(MlpTensor id, int step, cudaStream_t stream) {
    ArmLayer& layer = *layers_[static_cast<std::size_t>(id.layer) - 1];
    Slot& slot = id.tensor == TensorClass::x ? layer.x : id.tensor == TensorClass::w ? layer.w : layer.dy;
    const ArmState then{step, 1};
    const Buffer<ArmState> arm(std::span(&then, 1));
    const std::size_t padded =
        static_cast<std::size_t>(slot.shape.padded_rows) * static_cast<std::size_t>(slot.shape.padded_cols);
    const Buffer<float> values(padded);
    CastTarget target;
    target.element = Element::f32;
    target.rows = values.get();
    source_of(slot, arm.get(), stream, When::after)(target, Pass::cast);
    const bool turned = slot.rotated && first_along(slot.id) == Along::rows;
    if (turned)
        rotate(values.get(), values.get(), slot.shape.padded_rows, slot.shape.cols, slot.shape.padded_cols,
               Along::rows, te_signs(), stream);
    const Element stored = operand_element(slot);
    const auto counted = [&](const void* in, Element element, const float* factor) {
        constexpr std::size_t kCounts = Log2Histogram::kBins + 4;
        const Buffer<unsigned long long> counts(kCounts);
        log2_histogram(in, element, factor, static_cast<long long>(padded), counts.get(), stream);
        check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
        const auto found = counts.download();
        Log2Histogram histogram;
        const auto at = [&](std::size_t i) { return static_cast<std::int64_t>(found[i]); };
        for (std::size_t b = 0; b < Log2Histogram::kBins; ++b) histogram.counts[b] = at(b);
        const auto real =
            static_cast<std::int64_t>(turned ? slot.shape.padded_rows : slot.shape.rows) * slot.shape.cols;
        histogram.zeros =
            at(Log2Histogram::kBins) - (static_cast<std::int64_t>(padded) - real);  // the padding is zeros
        histogram.below = at(Log2Histogram::kBins + 1);
        histogram.above = at(Log2Histogram::kBins + 2);
        histogram.nonfinite = at(Log2Histogram::kBins + 3);
        histogram.n = real;
        return histogram;
    };
    TensorView view;
    view.id = id;
    view.step = step;
    view.before = counted(values.get(), Element::f32, nullptr);
    if (engine_ == Engine::emulated && !slot.cast) return view;
    view.format = slot.plan.format;
    ScaleState now;
    check(cudaMemcpy(&now, state(slot), sizeof now, cudaMemcpyDeviceToHost), "scales");
    const bool one_scale = slot.plan.granularity == Granularity::tensor;
    view.scale = one_scale ? now.scale_used : std::numeric_limits<float>::quiet_NaN();
    if (slot.scaling != ScaleMode::tensor) {
        // What the codes stand for, without undoing their layouts: emulation gives the same values.
        const Memory scratch(emulation_scratch_bytes(slot.plan, slot.shape.rows, slot.shape.cols));
        const Buffer<ScaleState> unused(1);
        emulate_cast(emulated(slot, first_along(slot.id)), values.get(), values.get(), unused.get(),
                     scratch.get(), nullptr, false, arm.get(), stream);
        view.after = counted(values.get(), Element::f32, nullptr);
        return view;
    }
    const void* payload = slot.for_first() ? slot.for_first() : slot.second.get();
    view.after = counted(payload, stored, engine_ == Engine::fp8 ? &state(slot)->scale_inv : nullptr);
    return view;
}

}  // namespace fp8lab::cuda
