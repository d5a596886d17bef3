// The launches of one step, in order.
#include <algorithm>
#include <limits>

#include "core/nn/streams.h"
#include "kernels/arm.h"
#include "kernels/ranges.h"

namespace fp8lab::cuda {
namespace {

ActivationKind kind_of(Activation a) {
    return a == Activation::tanh   ? ActivationKind::tanh
           : a == Activation::gelu ? ActivationKind::gelu
                                   : ActivationKind::relu;
}

// The order of the GEMMs: x and w serve fprop first, dy serves dgrad first, and wgrad where there is no
// dgrad.
Along first_along(TensorId id) {
    return id.tensor == TensorClass::dy && id.layer == 1 ? Along::rows : Along::cols;
}

}  // namespace

// One step on its way. Two streams, or one twice: the chain of products and casts with the first layer's
// update; beside it bookkeeping and the updates of the other layers.
struct CudaArm::Step {
    cudaStream_t main, side;
    Events& events;
    ArmState* arm;
    bool first;  // of a launch: nothing is on its way
    bool with_stats;
    const Mark& mark;
    std::size_t used = 0;

    void tell(Part part) const {
        if (mark) mark(part);
    }
    void record(Event& event) const { event.record(side); }
    void wait(const Event& event) const {
        if (main != side) check(cudaStreamWaitEvent(main, event.get()), "cudaStreamWaitEvent");
    }
    // What `side` does next waits for what `main` has been given so far.
    void fork() {
        if (main == side) return;
        Event& event = events.forks[used++];
        event.record(main);
        check(cudaStreamWaitEvent(side, event.get()), "cudaStreamWaitEvent");
    }
};

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
           (one_scale || slot.scaling == Scaling::rows);
}

// Otherwise the forward pass casts the weights: under scales of its own step.
bool CudaArm::cast_by_optimiser(const Slot& weights) const {
    return engine_ != Engine::emulated && !scaled_from_itself(weights) && weights.scaling == Scaling::tensor;
}

// What a GEMM multiplies the first or second operand of a slot by.
const float* CudaArm::factors(const Slot& slot, bool second) const {
    if (slot.scaling == Scaling::tensor) return &state(slot)->scale_inv;
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
    target.scaled = slot.plan.scaled;
    target.stats_partials = step.with_stats ? slot.stats.get() : nullptr;
    target.scaling = slot.scaling;
    if (slot.scaling != Scaling::tensor) target.vectors = slot.scales.vectors(controls_.get());
    if (slot.scaling == Scaling::mx) {
        keep_values();
        cast_matrix_to_mx(slot.values, Element::f32, slot.shape, target, step.main);
        step.tell(Part::cast);
        return;
    }
    if (scaled_from_itself(slot)) {
        launch(target, Pass::amax_only);
        if (slot.scaling == Scaling::rows)
            scale_vectors_from_amaxes(target.vectors, slot.shape, state(slot), step.main);
        else
            scale_from_amax(state(slot), controls_.get(), step.main);
    }
    launch(target, Pass::cast);
    step.tell(Part::cast);
}

EmulatedCast CudaArm::emulated(const Slot& slot, Along along) const {
    EmulatedCast how;
    how.plan = slot.plan;
    how.rows = slot.shape.rows;
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
        emulate_cast(emulated(slot, along), static_cast<const float*>(slot.values), static_cast<float*>(out),
                     state(slot), scratch_.get(), first && step.with_stats ? slot.stats.get() : nullptr,
                     first, step.arm, step.main);
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

// The first product needs only its own layer of the step before, whose other updates may still be at work.
void CudaArm::forward(const Step& step) {
    for (const auto& layer : layers_) {
        cast_value(layer->x, step);
        if (!cast_by_optimiser(layer->w)) cast_value(layer->w, step);
        layer->fprop->run(layer->x.for_first(), layer->w.for_first(), layer->h.get(),
                          factors(layer->x, false), factors(layer->w, false), step.main);
        step.tell(Part::gemm);
        round_emulated(layer->h.get(), layer->out, recipe_.out, step);
        if (layer->number == 1 && !step.first) step.wait(events_.finished);
    }
}

void CudaArm::loss(const Step& step) {
    ArmLayer& last = *layers_.back();
    const bool classes = spec_.loss == LossKind::cross_entropy;
    if (classes) {
        softmax_rows(loss_source(step.arm), last.out, row_stats_.get(), loss_partials_.get(),
                     row_correct_.get(), step.main);
        step.tell(Part::cast);
    }
    cast_value(last.dy, step);
}

// What is done with a tensor when its last cast of the step is enqueued.
void CudaArm::record_tensors(TensorSet set, const Step& step) {
    update_scales(states_.get(), history_.get(), tensors_, set, controls_.get(), tensor_results_.get(),
                  step.arm, step.side);
    if (!step.with_stats) return;
    for (const auto& layer : layers_)
        for (const Slot* slot : {&layer->x, &layer->w, &layer->dy})
            if (set >> slot->index & 1)
                reduce_stats(slot->stats.get(), stats_blocks(slot->shape), tensor_results_.get(), slot->index,
                             tensors_, step.arm, step.side);
}

// The dy of all layers but the last: cast in the backward pass.
TensorSet CudaArm::later_gradients() const {
    TensorSet set = 0;
    for (std::size_t l = 0; l + 1 < layers_.size(); ++l) set |= TensorSet{1} << layers_[l]->dy.index;
    return set;
}

// Beside the backward pass: whether the loss is finite, the scales of all other tensors, and for small
// batches the update of every layer whose weights dgrad has read.
void CudaArm::backward(Step& step) {
    step.fork();
    const Shape out = layers_.back()->out;
    const bool classes = spec_.loss == LossKind::cross_entropy;
    const double rows = out.rows, values = rows * out.cols;
    finish_loss(loss_partials_.get(), classes ? out.rows : stats_blocks(out), classes ? rows : values,
                classes ? row_correct_.get() : nullptr, out.rows, results_.get(), step.arm, step.side);
    record_tensors(~later_gradients(), step);
    step.record(events_.scales);
    step.tell(Part::bookkeeping);
    for (std::size_t l = layers_.size() - 1; l > 0; --l) {
        ArmLayer& layer = *layers_[l];
        ArmLayer& below = *layers_[l - 1];
        // FP8 reads the transposed weights; the others take the weights as they lie.
        layer.dgrad->run(layer.dy.for_first(), layer.w.for_second(), layer.da.get(), factors(layer.dy, false),
                         factors(layer.w, true), step.main);
        step.tell(Part::gemm);
        if (!layer.wgrad) optimise_beside(layer, step);
        round_emulated(layer.da.get(), layer.x.shape, recipe_.out, step);
        cast_value(below.dy, step);
    }
}

void CudaArm::optimise_biases(const Step& step) {
    BiasUpdates biases;
    for (const auto& layer : layers_)
        biases.layer[biases.layers++] = {
            layer->b.get(),         layer->mb.get(),       layer->vb.get(),
            layer->db.get(),        layer->b_before.get(), layer->bias_partials.get(),
            tiles_down(layer->out), layer->out.cols,       layer->out.padded_cols};
    update_biases(biases, rings_.inputs, rings_.input_slots, step.arm, finite_.get(), step.side);
}

void CudaArm::optimise(ArmLayer& layer, const Step& step, cudaStream_t stream) {
    CastTarget target;
    if (cast_by_optimiser(layer.w)) {
        target.element = operand_element(layer.w);
        target.rows = layer.w.cast ? layer.w.first.get() : layer.master.get();
        target.columns = layer.w.second.get();
        target.state = state(layer.w);
        target.scaled = layer.w.plan.scaled;
        target.stats_partials = step.with_stats ? layer.w.stats.get() : nullptr;
    } else {
        target.element = Element::f32;  // nothing is stored; the next step casts
    }
    UpdateSource source;
    source.w = layer.master.get();
    source.m = layer.m.get();
    source.v = layer.v.get();
    source.g = layer.dw.get();
    source.element = kept_in_;
    source.g_element = layer.dw.element();
    source.inputs = rings_.inputs;
    source.input_slots = rings_.input_slots;
    source.arm = step.arm;
    source.finite = finite_.get();
    if (layer.wgrad)
        update_weights(source, layer.w.shape, target, stream);
    else
        update_weights(source,
                       {layer.dy.for_second(), layer.x.for_second(), operand_element(layer.dy),
                        layer.out.padded_rows, &state(layer.dy)->scale_inv, &state(layer.x)->scale_inv},
                       layer.w.shape, target, stream);
    if (recipe_.master == MasterWeights::none)
        quantize_storage(layer, recipe_.round_update, step.arm, stream);
    step.tell(Part::optimiser);
}

// Beside what the main stream does next.
void CudaArm::optimise_beside(ArmLayer& layer, Step& step) {
    step.fork();
    optimise(layer, step, step.side);
}

void CudaArm::update(Step& step) {
    step.fork();
    if (layers_.size() > 1) record_tensors(later_gradients(), step);
    optimise_biases(step);
    step.tell(Part::bookkeeping);
    step.wait(events_.scales);
    for (std::size_t l = layers_.size(); l-- > 0;) {
        ArmLayer& layer = *layers_[l];
        if (layer.wgrad) {
            layer.wgrad->run(layer.dy.for_second(), layer.x.for_second(), layer.dw.get(),
                             factors(layer.dy, true), factors(layer.x, true), step.main);
            step.tell(Part::gemm);
            round_emulated(layer.dw.get(), layer.w.shape, recipe_.wgrad, step);
        }
        if (l == 0)
            optimise(layer, step, step.main);
        else if (layer.wgrad)  // else it was updated in the backward pass
            optimise_beside(layer, step);
    }
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

// What the optimiser does at the end of every step.
void CudaArm::requantise_weights() {
    const Mark nobody;
    const Step step{nullptr, nullptr, events_, arm_.get(), true, true, nobody};
    for (const auto& layer : layers_) {
        if (recipe_.master == MasterWeights::none)
            quantize_storage(*layer, Rounding::nearest, step.arm, step.main);
        if (cast_by_optimiser(layer->w)) cast_value(layer->w, step);
    }
}

// Bookkeeping and finished layers' updates run beside the backward pass, the next weight gradient and the
// beginning of the next step. When the parts are timed (`mark`) everything runs one after the other; the
// results are the same bytes.
void CudaArm::enqueue(cudaStream_t stream, int steps, bool with_stats, const Mark& mark) {
    const auto named = [](const char* name, const auto& part) {
        const Range range(name);
        part();
    };
    for (int i = 0; i < steps; ++i) {
        const bool last = i + 1 == steps;
        Step step{stream, mark ? stream : side_.get(), events_, arm_.get() + i, i == 0, with_stats, mark};
        named("forward", [&] { forward(step); });
        named("loss", [&] { loss(step); });
        named("backward", [&] { backward(step); });
        named("update", [&] { update(step); });
        step.fork();
        finish_step(finite_.get(), results_.get(), step.arm, last ? arm_.get() : nullptr, step.side);
        step.record(events_.finished);
        step.tell(Part::bookkeeping);
        // Emulated casts of two steps share their scratch memory.
        if (last || engine_ == Engine::emulated) step.wait(events_.finished);
    }
}

// Step `step` is done: its batch, h and da are still where they were, so that every tensor can be computed
// once more.
TensorView CudaArm::view(TensorId id, int step, cudaStream_t stream) {
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
        const auto real = static_cast<std::int64_t>(slot.shape.rows) * slot.shape.cols;
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
    if (slot.scaling != Scaling::tensor) {
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
