// The casts of a step: what the GEMMs read of every tensor.
#include <limits>
#include <utility>

#include "core/nn/streams.h"
#include "kernels/arm/arm.h"

namespace fp8lab::cuda {

Element CudaArm::operand_element(const Slot& slot) const {
    return slot.engine == Engine::emulated ? Element::f32
           : slot.engine == Engine::bf16   ? Element::bf16
                                           : element_of(*slot.plan.format);
}

// Whether a pass for the amaxes comes before the cast: with one scale per tensor or per row. Stored weights
// (master=none) have a scale of their own; those of a block are found by the cast itself.
bool CudaArm::scaled_from_itself(const Slot& slot) const {
    const bool stored = slot.tensor == TensorClass::w && recipe_.master == MasterWeights::none;
    const bool one_scale = slot.plan.granularity == Granularity::tensor && !stored;
    return slot.plan.scaled && slot.source == ScaleSource::current &&
           (one_scale || slot.scaling == ScaleMode::row);
}

// Otherwise the weights are cast for themselves, under scales of the step that reads them: also where each GEMM reads a
// cast of its own.
bool CudaArm::cast_by_optimiser(const Slot& weights) const {
    return weights.engine != Engine::emulated && !scaled_from_itself(weights) &&
           weights.scaling == ScaleMode::tensor && !weights.other;
}

const float* CudaArm::scale_inv(const Slot& slot) const {
    return slot.scale_inv.size() > 0 ? slot.scale_inv.get() : &state(slot)->scale_inv;
}

// What a GEMM multiplies the first or second operand of a slot by.
const float* CudaArm::factors(const Slot& slot, bool second) const {
    if (second && slot.other) return factors(*slot.other, true);
    if (slot.scaling == ScaleMode::tensor) return scale_inv(slot);
    const ScaleVectors vectors = slot.scales.vectors(controls(slot));
    return second ? vectors.columns : vectors.rows;
}

CastTarget CudaArm::target_of(const Slot& slot, bool with_stats) const {
    CastTarget target;
    target.element = operand_element(slot);
    target.rows = slot.first.get();
    target.columns = slot.second.get();
    target.state = state(slot);
    target.scale_inv = slot.scale_inv.get();
    target.scaled = slot.plan.scaled;
    target.stats_partials = with_stats ? slot.stats.get() : nullptr;
    target.scaling = slot.scaling;
    if (slot.scaling != ScaleMode::tensor) target.vectors = slot.scales.vectors(controls(slot));
    return target;
}

void CudaArm::cast(Slot& slot, const StepContext& step, const Launch& launch) {
    if (slot.other && cast_together(slot, step, launch)) return;
    cast_side(slot, step, launch);
    if (slot.other) cast_side(*slot.other, step, launch);
}

// Both casts of a split tensor by one launch, which reads what they share once: FP8 with one scale, and BF16 beside it.
// Statistics are those of one cast.
bool CudaArm::cast_together(Slot& slot, const StepContext& step, const Launch& launch) {
    const Slot *fp8 = &slot, *bf16 = slot.other.get();
    if (fp8->engine == Engine::bf16) std::swap(fp8, bf16);
    if (step.with_stats || fp8->engine != Engine::fp8 || fp8->scaling != ScaleMode::tensor ||
        bf16->engine != Engine::bf16 || !bf16->cast)
        return false;
    CastTarget target = target_of(*fp8, false);
    target.beside = bf16->first.get();
    if (scaled_from_itself(*fp8)) {
        launch(target, Pass::amax_only);
        scale_from_amax(state(*fp8), controls(*fp8), step.main);
    }
    launch(target, Pass::cast);
    step.tell(Part::cast);
    return true;
}

void CudaArm::cast_side(Slot& slot, const StepContext& step, const Launch& launch) {
    const auto keep_values = [&] {
        if (!slot.value.get()) return;  // the master weights, or what a GEMM wrote: they are there
        CastTarget values;
        values.element = Element::f32;
        values.rows = slot.value.get();
        launch(values, Pass::cast);
    };
    if (slot.engine == Engine::emulated) {
        keep_values();
        return cast_kept(slot, step);
    }
    const CastTarget target = target_of(slot, step.with_stats);
    if (slot.in_place()) {  // nothing is stored; the statistics are taken
        if (step.with_stats) launch(target, Pass::cast);
        return;
    }
    if (slot.scaling == ScaleMode::block32) {
        keep_values();
        cast_matrix_to_mx(slot.values, Element::f32, slot.shape, target, step.main);
        step.tell(Part::cast);
        return;
    }
    if (scaled_from_itself(slot)) {
        launch(target, Pass::amax_only);
        if (slot.scaling == ScaleMode::tensor) scale_from_amax(state(slot), controls(slot), step.main);
    }
    launch(target, Pass::cast);
    step.tell(Part::cast);
}

void CudaArm::cast_kept(Slot& slot, const StepContext& step) {
    if (slot.cast) cast_emulated(slot, step);
    step.tell(Part::cast);
}

EmulatedCast CudaArm::emulated(const Slot& slot, Along along, int micro) const {
    EmulatedCast how;
    how.plan = slot.plan;
    how.rows = slot.rotated && along == Along::rows ? slot.shape.padded_rows : slot.shape.rows;
    how.cols = slot.shape.cols;
    how.stride = slot.shape.padded_cols;
    how.along = along;
    how.seed = spec_.seed;
    how.layer = slot.ordinal;
    how.detail = slot.place * 2 + (along == Along::rows);
    // Weights are rounded alike in all ranks.
    how.micro = slot.tensor == TensorClass::w ? micro : first_micro_ + micro;
    how.controls = controls(slot);
    return how;
}

void CudaArm::cast_emulated(Slot& slot, const StepContext& step) {
    const Shape shape = slot.shape;
    if (scaled_from_itself(slot)) {
        const long long count = static_cast<long long>(shape.padded_rows) * shape.padded_cols;
        amax(slot.values, Element::f32, count, &state(slot)->amax_bits, step.main);
        scale_from_amax(state(slot), controls(slot), step.main);
    }
    const auto run = [&](Along along, void* out, bool first) {
        const auto* in = static_cast<const float*>(slot.values);
        if (slot.rotated && along == Along::rows) {  // the padding of the batch is zeros
            auto* const turned = static_cast<float*>(rotated_.get());
            rotate(in, turned, shape.padded_rows, shape.cols, shape.padded_cols, along, te_signs(),
                   step.main);
            if (recipe_.rht_bf16)
                round_to_bf16(turned, turned, static_cast<long long>(shape.padded_rows) * shape.padded_cols,
                              step.main);
            in = turned;
        }
        emulate_cast(emulated(slot, along, step.micro), in, static_cast<float*>(out), state(slot),
                     scratch_.get(), first && step.with_stats ? slot.stats.get() : nullptr, first, step.arm,
                     step.main);
    };
    run(slot.first_along, slot.first.get(), true);
    if (slot.has_second) run(Along::rows, slot.second.get(), false);
}

// Tensor cores store BF16 themselves; an emulated product is in FP32.
void CudaArm::round_emulated(void* product, Shape shape, OutType to, const StepContext& step) {
    if (engine_ != Engine::emulated || to == OutType::fp32) return;
    auto* const values = static_cast<float*>(product);
    round_to_bf16(values, values, static_cast<long long>(shape.padded_rows) * shape.padded_cols, step.main);
    step.tell(Part::cast);
}

void CudaArm::quantize_storage(const Slot& weights, void* master, Rounding rounding, const ArmState* arm,
                               cudaStream_t stream) {
    EmulatedCast how;
    how.plan.format = &find_format("e4m3");
    how.plan.scaled = true;
    how.plan.rounding = rounding;
    how.rows = weights.shape.rows;
    how.cols = weights.shape.cols;
    how.stride = weights.shape.padded_cols;
    how.seed = spec_.seed;
    how.layer = weights.ordinal;
    how.draw = Draw::update;
    auto* const values = static_cast<float*>(master);
    emulate_cast(how, values, values, state(weights), scratch_.get(), nullptr, false, arm, stream);
}

// Step `step` is done: what its sources read is still there, so that every tensor can be computed once more.
TensorView CudaArm::view(TensorId id, int step, cudaStream_t stream) {
    Slot& slot = *slots_[id.index];
    const ArmState then{step, 1};
    const Buffer<ArmState> arm(std::span(&then, 1));
    const std::size_t padded = elements(slot.shape);
    const Buffer<float> values(padded);
    CastTarget target;
    target.element = Element::f32;
    target.rows = values.get();
    source_of(slot, arm.get(), stream, When::after)(target, Pass::cast);
    const bool turned = slot.rotated && slot.first_along == Along::rows;
    if (turned)
        rotate(values.get(), values.get(), slot.shape.padded_rows, slot.shape.cols, slot.shape.padded_cols,
               Along::rows, te_signs(), stream);
    if (turned && recipe_.rht_bf16)
        round_to_bf16(values.get(), values.get(), static_cast<long long>(padded), stream);
    const auto counted = [&](const void* in, Element element, const float* factor) {
        constexpr std::size_t kCounts = Log2Histogram::kBins + 4;
        const Buffer<unsigned long long> counts(kCounts);
        log2_histogram(in, element, factor, static_cast<long long>(padded), counts.get(), stream);
        check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
        const auto found = counts.download();
        Log2Histogram histogram;
        const auto at = [&](std::size_t i) { return static_cast<std::int64_t>(found[i]); };
        for (std::size_t b = 0; b < Log2Histogram::kBins; ++b) histogram.counts[b] = at(b);
        const std::int64_t real = recorded_elements(id);
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
    if (slot.plan.format->name == "fp32") return view;
    view.format = slot.plan.format;
    ScaleState now;
    check(cudaMemcpy(&now, state(slot), sizeof now, cudaMemcpyDeviceToHost), "scales");
    const bool one_scale = slot.plan.granularity == Granularity::tensor;
    view.scale = one_scale ? now.scale_used : std::numeric_limits<float>::quiet_NaN();
    if (slot.scaling != ScaleMode::tensor) {
        // What the codes stand for, without undoing their layouts: emulation gives the same values.
        const Memory scratch(emulation_scratch_bytes(slot.plan, slot.shape.rows, slot.shape.cols));
        const Buffer<ScaleState> unused(1);
        emulate_cast(emulated(slot, slot.first_along, spec_.accumulate.micro_batches - 1), values.get(),
                     values.get(), unused.get(), scratch.get(), nullptr, false, arm.get(), stream);
        view.after = counted(values.get(), Element::f32, nullptr);
        return view;
    }
    const void* payload = slot.for_first() ? slot.for_first() : slot.second.get();
    view.after = counted(payload, operand_element(slot),
                         slot.engine == Engine::fp8 ? &state(slot)->scale_inv : nullptr);
    return view;
}

}  // namespace fp8lab::cuda
