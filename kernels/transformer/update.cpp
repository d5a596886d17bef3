// The optimiser's part of a step: beside the backward pass, and the rest after it.
#include <algorithm>
#include <tuple>
#include <vector>

#include "kernels/transformer/arm.h"

namespace fp8lab::cuda {

void TransformerArm::begin_step() {
    events_used_ = 0;
    side_used_ = false;
    waiting_ = {};
    shared_.clear();
}

// The update waits for its turn. The gradient of a head that reads the embedding is a part of the embedding's.
void TransformerArm::gradient_is_there(const Linear& linear) {
    if (linear.dw != &head_gradient_) waiting_.linears.push_back(&linear);
}

// The next work on the side stream waits for all work that the main one has so far.
void TransformerArm::begin_beside(const StepContext& step) {
    if (step.main == step.side) return;
    Event& ready = next_event();
    ready.record(step.main);
    check(cudaStreamWaitEvent(step.side, ready.get()), "cudaStreamWaitEvent");
    side_used_ = true;
}

// A GEMM takes all registers of a multiprocessor; the last kernel of attention does not, so that updates run beside it. They
// move up to 1.25 times its bytes: a small rest shall not need a launch of its own.
void TransformerArm::attend_backward_beside_updates(Block& block, const StepContext& step) {
    if (place_.several()) share_waiting(step);
    const bool beside = step.main != step.side && !clips() && !place_.several() && attention_ &&
                        attention_->bytes_of_last() > 0;
    if (!beside) return attend_backward(block, step);
    Event& before = next_event();
    before.record(step.main);
    attend_backward(block, step);
    begin_beside_last(step.side, step.main, before);
    side_used_ = true;
    const UpdateSource source = waiting_updates(step).front().source;
    // The weight and two moments, read and written, the gradient and the payload.
    const auto bytes_of_moment = [&](const MomentStore& moment) {
        return bytes_of(source.rounded.any() ? moment.element : source.element);
    };
    const int of_element = 2 * (bytes_of(source.element) + bytes_of_moment(source.rounded.m) +
                                bytes_of_moment(source.rounded.v)) +
                           bytes_of(source.g_element) + 2;
    const auto fits = static_cast<unsigned>(attention_->bytes_of_last() /
                                            static_cast<std::size_t>(kTileRows * kTileCols * of_element));
    update_waiting(fits + fits / 4, static_cast<unsigned>(multiprocessors()), step, step.side);
}

// What waits, beside what the backward pass does next.
void TransformerArm::update_beside(const StepContext& step) {
    if (place_.several()) return share_waiting(step);
    begin_beside(step);
    update_waiting(~0U, 0, step, step.side);
}

// The next `most` tiles of what waits, in at most `blocks` blocks of threads (0: one a tile).
void TransformerArm::update_waiting(unsigned most, unsigned blocks, const StepContext& step,
                                    cudaStream_t stream) {
    const std::vector<WeightUpdate> updates = waiting_updates(step);
    const unsigned all = tiles_of(updates), first = waiting_.tiles_done,
                   last = most < all - first ? first + most : all;
    update_weights(updates, {first, last}, blocks, stream);
    waiting_.tiles_done = last;
    if (last == all) {
        for (const Linear* linear : waiting_.linears) quantise(*linear->weight, linear->w, step, stream);
        waiting_ = {};
    }
    step.tell(Part::optimiser);
}

std::vector<WeightUpdate> TransformerArm::waiting_updates(const StepContext& step) const {
    std::vector<WeightUpdate> updates;
    for (const Linear* linear : waiting_.linears)
        updates.push_back(update_of(*linear->weight, &linear->w, step));
    return updates;
}

void TransformerArm::quantise(const MatrixParameter& parameter, const Slot& slot, const StepContext& step,
                              cudaStream_t stream) {
    if (recipe_.master == MasterWeights::none)
        quantize_storage(slot, parameter.master.get(), recipe_.round_update, step.arm, stream);
}

// What its update reads: of one rank, or summed over the ranks.
std::pair<const void*, Element> TransformerArm::gradient_of(const MatrixParameter& parameter) const {
    if (place_.several() && !parameter.in_bucket)
        return {summed_gradient(shared(parameter, nullptr)), summed_in()};
    return {parameter.gradient.get(), parameter.gradient.element()};
}

WeightUpdate TransformerArm::update_of(const MatrixParameter& parameter, const Slot* slot,
                                       const StepContext& step) const {
    const WeightBlock* const block = parameter.own();
    CastTarget target;
    target.element = Element::f32;  // nothing is stored; the next step casts
    if (block) {
        target = block_target(shared(parameter, slot), step.with_stats);
    } else if (slot && !recast(*slot)) {
        target = target_of(*slot, step.with_stats);
        if (!slot->cast) target.rows = parameter.master.get();
    }
    UpdateSource source;
    source.w = parameter.master.get();
    source.m = parameter.m.get();
    source.v = parameter.v.get();
    std::tie(source.g, source.g_element) = gradient_of(parameter);
    source.element = parameter.master.element();
    source.inputs = rings_.inputs;
    source.input_slots = rings_.input_slots;
    source.arm = step.arm;
    source.finite = finite_.get();
    source.adamw = adamw();
    source.gradient_factor = clip_factor_.get();
    if (slot) source.rounded = rounded(parameter.m, parameter.v, slot->ordinal);
    return {source, block ? block->shape : parameter.shape, target};
}

void TransformerArm::optimise_gains(const StepContext& step) {
    const auto vectors = weights_.vectors();
    const int strips = norm_partials(shape(static_cast<int>(shape_.d)));
    for (std::size_t first = 0; first < vectors.size(); first += kMostBiases) {
        BiasUpdates updates;
        for (std::size_t i = first; i < std::min(first + kMostBiases, vectors.size()); ++i) {
            VectorParameter& p = *vectors[i];
            const bool summed = clips() || place_.several();
            updates.layer[updates.layers++] = {
                p.value.get(),       p.m.get(),      p.v.get(),
                p.gradient.get(),    p.before.get(), summed ? summed_gradient(p) : p.partials.get(),
                summed ? 1 : strips, p.count,        padded(p.count)};
        }
        update_biases(updates, rings_.inputs, rings_.input_slots, step.arm, finite_.get(), step.main, adamw(),
                      clip_factor_.get());
    }
    step.tell(Part::optimiser);
}

// What gradients are multiplied by, from the norm of all.
void TransformerArm::limit_norm(const StepContext& step) {
    const int strips = norm_partials(shape(static_cast<int>(shape_.d)));
    const auto square = [&](const void* g, Element element, std::size_t count, std::size_t at) {
        sum_of_squares(g, element, static_cast<long long>(count), square_partials_.get() + at, step.main);
    };
    for (VectorParameter* p : weights_.vectors()) {
        if (!p->summed)
            sum_strips(p->partials.get(), strips, p->count, padded(p->count), p->gradient.get(), step.main);
        square(summed_gradient(*p), Element::f32, static_cast<std::size_t>(padded(p->count)), p->partials_at);
    }
    for (MatrixParameter* p : weights_.matrices()) {
        const auto [g, element] = gradient_of(*p);
        square(g, element, p->block ? p->block->elements() : elements(p->shape), p->partials_at);
    }
    share_partials(step);
    clip_factor(square_partials_.get(), static_cast<int>(square_partials_.size()), spec_.clip,
                clip_factor_.get(), nullptr, step.main, 1.0 / place_.count);
    step.tell(Part::optimiser);
}

// What the backward pass has not updated yet: with clipping everything.
void TransformerArm::update(const StepContext& step) {
    if (place_.several()) return update_with_ranks(step);
    if (clips()) {
        limit_norm(step);
        update_waiting(~0U, 0, step, step.main);
    }
    update_embedding(step);
    optimise_gains(step);
}

void TransformerArm::update_embedding(const StepContext& step) {
    const Slot* const head = shape_.tied ? &head_.w : nullptr;
    const WeightUpdate embedding = update_of(*embedding_, head, step);
    update_weights(embedding.source, embedding.shape, embedding.target, step.main);
    if (head) quantise(*embedding_, *head, step, step.main);
    step.tell(Part::optimiser);
}

// The updates on the side stream are a part of the step.
void TransformerArm::join(const StepContext& step) {
    if (!side_used_) return;
    Event& done = next_event();
    done.record(step.side);
    check(cudaStreamWaitEvent(step.main, done.get()), "cudaStreamWaitEvent");
    side_used_ = false;
}

}  // namespace fp8lab::cuda
