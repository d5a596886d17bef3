// The launches of one step, in order.
#include "kernels/mlp/step.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "kernels/device/ranges.h"

namespace fp8lab::cuda {

// Steps of a launch alternate.
Slot& MlpArm::x_of(MlpLayer& layer, const Step& step) {
    return layer.number == 1 && step.other_x ? *other_x_ : layer.x;
}

// The first product needs only its own layer of the step before, whose other updates may still be at work.
void MlpArm::forward(const Step& step) {
    for (const auto& layer : layers_) {
        Slot& x = x_of(*layer, step);
        if (layer->number > 1 || step.first || !other_x_) cast_value(x, step);
        if (step.micro == 0 && layer->block) step.wait(events_.gathered[layer->number - 1]);
        if (step.micro == 0 && casts_weights(*layer) && (step.first || !cast_beside(*layer)))
            cast_value(layer->w, step);
        watched(Part::gemm, step.main, [&] {
            layer->fprop->run(x.for_first(), layer->w.for_first(), layer->h.get(), factors(x, false),
                              factors(layer->w, false), step.main);
        });
        step.tell(Part::gemm);
        round_emulated(layer->h.get(), layer->out, recipe_.out, step);
        if (layer->number == 1 && !step.first) step.wait(events_.finished);
    }
}

void MlpArm::loss(const Step& step) {
    MlpLayer& last = *layers_.back();
    const bool classes = spec_.loss == LossKind::cross_entropy;
    if (classes) {
        softmax_rows(loss_source(step.arm), last.out, row_stats_.get(), loss_partials(),
                     row_correct_.get() + micro_ * rows(), step.main);
        step.tell(Part::cast);
    }
    cast_value(last.dy, step);
}

void MlpArm::record_now(const std::vector<bool>& chosen, const Step& step) {
    add_slot(x_of(*layers_.front(), step));
    record_tensors(chosen, step);
}

// The dy of all layers but the last: cast in the backward pass.
std::vector<bool> MlpArm::later_gradients() const {
    std::vector<bool> set(static_cast<std::size_t>(tensors_));
    for (std::size_t l = 0; l + 1 < layers_.size(); ++l) set[layers_[l]->dy.id.index] = true;
    return set;
}
std::vector<bool> MlpArm::all_but_later_gradients() const {
    std::vector<bool> set = later_gradients();
    set.flip();
    return set;
}

// Of all micro-batches together.
void MlpArm::finish_all_losses(const Step& step) {
    const Shape out = layers_.back()->out;
    const bool classes = spec_.loss == LossKind::cross_entropy;
    const int all = parts() * out.rows, partials = classes ? all : parts() * stats_blocks(out);
    const double elements = static_cast<double>(all) * (classes ? 1 : out.cols);
    finish_loss(loss_partials_.get(), partials, elements, classes ? row_correct_.get() : nullptr, all,
                results_.get(), step.arm, step.side);
}

// Beside the backward pass: whether the loss is finite, the scales of all other tensors, the next batch, and
// for small batches the update of every layer whose weights dgrad has read.
void MlpArm::backward(Step& step) {
    // An arm that has skipped steps and has no scale any more has other factors of AdamW.
    if (!step.more && loss_scale_.size() > 0 && recipe_.loss_scale == 0) update_loss_scale(step);
    step.fork();
    if (!step.more) {
        finish_all_losses(step);
        if (!place_.several()) record_now(all_but_later_gradients(), step);
    }
    if (other_x_ && !step.last) {
        const Step next = step.next_beside();
        cast_value(x_of(*layers_.front(), next), next);
    }
    step.record(events_.scales);
    step.tell(Part::bookkeeping);
    for (std::size_t l = layers_.size() - 1; l > 0; --l) {
        MlpLayer& layer = *layers_[l];
        MlpLayer& below = *layers_[l - 1];
        // FP8 reads the transposed weights; the others take the weights as they lie.
        watched(Part::gemm, step.main, [&] {
            layer.dgrad->run(layer.dy.for_first(), layer.w.for_second(), layer.da.get(),
                             factors(layer.dy, false), factors(layer.w, true), step.main);
        });
        step.tell(Part::gemm);
        if (!layer.wgrad) optimise_beside(layer, step);
        round_emulated(layer.da.get(), layer.x.shape, recipe_.out, step);
        cast_value(below.dy, step);
    }
}

BiasUpdates MlpArm::bias_updates() const {
    BiasUpdates biases;
    for (const auto& layer : layers_)
        biases.layer[biases.layers++] = {layer->b.get(),
                                         layer->mb.get(),
                                         layer->vb.get(),
                                         layer->db.get(),
                                         layer->b_before.get(),
                                         layer->bias_partials.get(),
                                         parts() * tiles_down(layer->out),
                                         layer->out.cols,
                                         layer->out.padded_cols};
    return biases;
}

const float* MlpArm::gradient_factor() const {
    return loss_scale_.size() > 0 ? &loss_scale_.get()->factor : gradient_factor_.get();
}

const StepInput* MlpArm::inputs() const {
    return loss_scale_.size() > 0 ? &loss_scale_.get()->input : rings_.inputs;
}

void MlpArm::optimise_biases(const Step& step) {
    update_biases(bias_updates(), inputs(), input_slots(), step.arm, finite_.get(), step.side, adamw(),
                  gradient_factor());
}

void MlpArm::optimise(MlpLayer& layer, const Step& step, cudaStream_t stream) {
    if (updated_shape(layer).rows == 0) return;  // this rank has no block
    const Slot& x = x_of(layer, step);
    CastTarget target;
    if (layer.block) {
        target = block_target(shared(layer), step.with_stats);
    } else if (cast_by_optimiser(layer.w)) {
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
    source.g = summed_gradient(shared(layer));
    source.element = kept_in_;
    source.g_element = place_.several() ? summed_in() : layer.dw.element();
    source.inputs = inputs();
    source.input_slots = input_slots();
    source.arm = step.arm;
    source.finite = finite_.get();
    source.adamw = adamw();
    source.gradient_factor = gradient_factor();
    source.rounded = rounded(layer.m, layer.v, layer.w.ordinal);
    if (layer.wgrad)
        update_weights(source, updated_shape(layer), target, stream);
    else
        update_weights(source,
                       {layer.dy.for_second(), x.for_second(), operand_element(layer.dy.of_second()),
                        layer.out.padded_rows, factors(layer.dy, true), factors(x, true),
                        x.of_second().scaling != ScaleMode::tensor},
                       layer.w.shape, target, stream);
    if (recipe_.master == MasterWeights::none)
        quantize_storage(layer.w, layer.master.get(), recipe_.round_update, step.arm, stream);
    if (layer.block && engine_ == Engine::emulated) send_block(shared(layer), stream);
    step.tell(Part::optimiser);
}

// Beside what the main stream does next: the update, and the next step's cast of weights that the optimiser
// does not cast. Within a launch no control moves: its scales are those that the step itself would compute.
void MlpArm::optimise_beside(MlpLayer& layer, Step& step) {
    step.fork();
    optimise(layer, step, step.side);
    if (step.last || cast_by_optimiser(layer.w) || !cast_beside(layer)) return;
    const Step next = step.next_beside();
    cast_value(layer.w, next);
}

// The first layer's are updated last, and read first.
bool MlpArm::cast_beside(const MlpLayer& layer) const {
    return layer.number > 1 && engine_ != Engine::emulated;
}

// To those of the micro-batches before.
void MlpArm::add_gradient(MlpLayer& layer, const Step& step) {
    const Slot& x = x_of(layer, step);
    watched(Part::gemm, step.main, [&] {
        layer.wgrad->run(layer.dy.for_second(), x.for_second(), layer.dw.get(), factors(layer.dy, true),
                         factors(x, true), step.main, step.micro > 0);
    });
    step.tell(Part::gemm);
    round_emulated(layer.dw.get(), layer.w.shape,
                   spec_.accumulate.format == "bf16" ? OutType::bf16 : recipe_.wgrad, step);
}

// Of a micro-batch that others follow: no update.
void MlpArm::add_gradients(const Step& step) {
    for (std::size_t l = layers_.size(); l-- > 0;) add_gradient(*layers_[l], step);
    keep_amaxes(step);
    step.tell(Part::bookkeeping);
}

void MlpArm::update_loss_scale(const Step& step) {
    if (recipe_.loss_scale > 0) {
        for (const auto& layer : layers_)
            find_nonfinite(layer->dw.get(), layer->dw.element(),
                           static_cast<long long>(elements(layer->w.shape)), loss_scale_.get(), step.main);
        find_nonfinite_biases(bias_updates(), loss_scale_.get(), step.main);
    }
    const LossScaleRule rule{recipe_.growth_interval, parts(), spec_.beta1, spec_.beta2};
    cuda::update_loss_scale(loss_scale_.get(), rule, rings_.inputs, rings_.input_slots,
                            loss_scale_results_.get(), step.arm, step.main);
    step.tell(Part::optimiser);
}

void MlpArm::update(Step& step) {
    if (place_.several()) return update_with_ranks(step);
    const bool scales = recipe_.loss_scale > 0;
    if (scales) {  // all gradients come first
        step.wait(events_.scales);
        for (std::size_t l = layers_.size(); l-- > 0;) add_gradient(*layers_[l], step);
        update_loss_scale(step);
    }
    step.fork();
    if (layers_.size() > 1) record_now(later_gradients(), step);
    optimise_biases(step);
    step.tell(Part::bookkeeping);
    step.wait(events_.scales);
    for (std::size_t l = layers_.size(); l-- > 0;) {
        MlpLayer& layer = *layers_[l];
        if (layer.wgrad && !scales) add_gradient(layer, step);
        if (l == 0)
            optimise(layer, step, step.main);
        else if (layer.wgrad)  // else it was updated in the backward pass
            optimise_beside(layer, step);
    }
}

// What the optimiser does at the end of every step.
void MlpArm::requantise_weights() {
    const Step step({nullptr, nullptr, arm_.get(), true, nullptr, 0, false}, events_, true, true, false);
    for (const auto& layer : layers_) {
        if (recipe_.master == MasterWeights::none)
            quantize_storage(layer->w, layer->master.get(), Rounding::nearest, step.arm, step.main);
        if (layer->block)
            send_block(shared(*layer), step.main);
        else if (cast_by_optimiser(layer->w))
            cast_value(layer->w, step);
    }
}

// Bookkeeping, the cast of the next batch and finished layers' updates run beside the backward pass, the next
// weight gradient and the beginning of the next step. When the parts are timed (`mark`) everything runs one
// after the other; the results are the same bytes.
void MlpArm::enqueue(cudaStream_t stream, int steps, bool with_stats, const Mark& mark) {
    const auto named = [](const char* name, const auto& part) {
        const Range range(name);
        part();
    };
    if (steps > kStepsPerLaunch)
        throw Error(ErrorKind::backend, "steps of a launch", fmt::format("{} are too many", steps));
    for (int i = 0; i < steps; ++i) {
        const bool last = i + 1 == steps, other_x = other_x_ && (steps - 1 - i) % 2 == 1;
        Step begin(
            {stream, mark || parts() > 1 ? stream : side_.get(), arm_.get() + i, with_stats, &mark, 0, false},
            events_, i == 0, last, other_x);
        named("gather", [&] { gather_weights(begin); });
        for (micro_ = 0; micro_ + 1 < parts(); ++micro_) {  // on one stream
            Step part({stream, stream, arm_.get() + i, with_stats, &mark, micro_, true}, events_, i == 0,
                      last, other_x);
            named("forward", [&] { forward(part); });
            named("loss", [&] { loss(part); });
            named("backward", [&] { backward(part); });
            named("gradients", [&] { add_gradients(part); });
        }
        Step step({stream, mark ? stream : side_.get(), arm_.get() + i, with_stats, &mark, micro_, false},
                  events_, i == 0, last, other_x);
        step.used = begin.used;
        named("forward", [&] { forward(step); });
        named("loss", [&] { loss(step); });
        named("backward", [&] { backward(step); });
        named("update", [&] { update(step); });
        step.fork();
        finish_step(finite_.get(), results_.get(), step.arm, last ? arm_.get() : nullptr, step.side,
                    loss_scale_.get(), moment_counts_.get(), moment_results_.get());
        step.record(events_.finished);
        step.tell(Part::bookkeeping);
        // Emulation need not be fast: its steps follow each other.
        if (last || engine_ == Engine::emulated) step.wait(events_.finished);
    }
}

}  // namespace fp8lab::cuda
