// The order in which a rank of several exchanges what kernels/arm/ranks.cpp can.
//
// Sharded weights are gathered at the beginning of a step, those of a block together and in the order of the forward pass, and each
// GEMM waits for its own. Gradients of linear layers travel beside the rest of the backward pass, about a block's together, and these
// are updated as soon as they are there; all others, of the embedding and of gains, are one bucket of FP32 at the end. With a limit
// of the norm all updates come last.
#include <algorithm>
#include <span>

#include "kernels/ranks/launch.h"
#include "kernels/transformer/arm.h"

namespace fp8lab::cuda {

SharedWeight TransformerArm::shared(const MatrixParameter& parameter, const Slot* slot) {
    return {slot, &parameter.master, &parameter.gradient, &parameter.sent_gradient, parameter.own()};
}

bool TransformerArm::casts_weights(const Linear& linear) const {
    if (const WeightBlock* const block = linear.weight->own()) return casts_gathered(linear.w, *block);
    return linear.w.cast && recast(linear.w);
}

void TransformerArm::gather_weights(const StepContext& step) {
    if (place_.several()) place_.collective->use(step.side);
    if (!spec_.ranks.sharded()) return;
    begin_beside(step);
    std::vector<Linear*> sharded = linears();
    std::erase_if(sharded, [](const Linear* linear) { return !linear->weight->block; });
    std::vector<SharedWeight> weights;
    for (const Linear* linear : sharded) weights.push_back(shared(*linear->weight, &linear->w));
    scale_blocks(weights, step);
    constexpr std::size_t kOfBlock = 4;
    for (std::size_t first = 0; first < weights.size(); first += kOfBlock) {
        const std::size_t count = std::min(kOfBlock, weights.size() - first);
        gather(std::span(weights).subspan(first, count), step);
        if (step.main == step.side) continue;
        for (std::size_t i = first; i < first + count; ++i) sharded[i]->gathered->record(step.side);
    }
}

// Of tensors whose last cast is enqueued.
void TransformerArm::record_or_share(const std::vector<bool>& chosen, const StepContext& step) {
    if (!place_.several()) return record_tensors(chosen, on_main(step));
    begin_beside(step);
    share_amaxes(chosen, step);
}

void TransformerArm::share_waiting(const StepContext& step) {
    begin_beside(step);
    std::vector<SharedWeight> weights;
    for (const Linear* linear : waiting_.linears) weights.push_back(shared(*linear->weight, &linear->w));
    share_gradients(weights, step);
    if (clips())
        shared_.insert(shared_.end(), waiting_.linears.begin(), waiting_.linears.end());
    else
        for (const Linear* linear : waiting_.linears) update_alone(*linear, on_side(step));
    waiting_ = {};
}

void TransformerArm::update_alone(const Linear& linear, const StepContext& step) {
    const WeightUpdate update = update_of(*linear.weight, &linear.w, step);
    if (update.shape.rows == 0) return;  // this rank has no block
    update_weights(update.source, update.shape, update.target, step.main);
    if (linear.weight->block && engine_ == Engine::emulated)
        send_block(shared(*linear.weight, &linear.w), step.main);
    step.tell(Part::optimiser);
}

// Each rank has the sums of squares of its own blocks; then all have those of all.
void TransformerArm::share_partials(const StepContext& step) {
    const std::size_t bytes = weights_.partials_of_blocks() * sizeof(double);
    if (bytes == 0) return;
    auto* const all = reinterpret_cast<std::byte*>(square_partials_.get());
    const RankBuffers one{place_.rank, all + static_cast<std::size_t>(place_.rank) * bytes, all};
    watched(Part::network, step.main, [&] { place_.collective->all_gather({&one, 1}, bytes); });
    step.tell(Part::network);
}

void TransformerArm::update_with_ranks(const StepContext& whole) {
    begin_beside(whole);
    const StepContext step = on_side(whole);
    const int strips = norm_partials(shape(static_cast<int>(shape_.d)));
    const auto vectors = weights_.vectors();
    for (std::size_t first = 0; first < vectors.size(); first += kMostBiases) {
        BiasUpdates sums;
        for (std::size_t i = first; i < std::min(first + kMostBiases, vectors.size()); ++i) {
            BiasUpdate& one = sums.layer[sums.layers++];
            one.db = vectors[i]->summed;
            one.partials = vectors[i]->partials.get();
            one.tiles = strips;
            one.count = vectors[i]->count;
            one.padded = padded(vectors[i]->count);
        }
        sum_biases(sums, step.main);
    }
    step.tell(Part::optimiser);
    share_bucket(weights_.bucket(), step);
    if (clips()) limit_norm(step);
    for (const Linear* linear : shared_) update_alone(*linear, step);
    update_embedding(step);
    optimise_gains(step);
}

}  // namespace fp8lab::cuda
