// The order in which a rank of several exchanges what kernels/arm/ranks.cpp can.
//
// Sharded weights are gathered at the beginning of a step, in the order in which layers read them, and each layer waits for its
// own. In the update the sums of gradients run beside the next weight gradient, and each rank updates its blocks.
#include "kernels/mlp/step.h"
#include "kernels/ranks/launch.h"

namespace fp8lab::cuda {

void MlpArm::allocate_ranks(MlpLayer& layer, const ArmMemory& plan) {
    const auto take = [&](ArmPart part) { return Memory(plan.bytes(part, layer.number)); };
    layer.sent_gradient = take(ArmPart::sent_gradient);
    if (!spec_.ranks.sharded()) return;
    layer.block = make_block(layer.w.id, layer.w.shape, take);
    if (layer.w.first.bytes() > 0) fill_zeros(layer.w.first.get(), layer.w.first.bytes());
}

const WeightBlock* MlpArm::block_of(TensorId id) const {
    if (plan_.tensor(id).tensor != TensorClass::w) return nullptr;
    const auto& block = layers_[static_cast<std::size_t>(MlpTensor(id).layer) - 1]->block;
    return block ? &*block : nullptr;
}

SharedWeight MlpArm::shared(const MlpLayer& layer) {
    return {&layer.w, &layer.master, &layer.dw, &layer.sent_gradient, layer.block ? &*layer.block : nullptr};
}

bool MlpArm::keeps(TensorId id) const {
    return plan_.tensor(id).tensor != TensorClass::w || !spec_.ranks.sharded();
}

bool MlpArm::casts_weights(const MlpLayer& layer) const {
    return layer.block ? casts_gathered(layer.w, *layer.block) : !cast_by_optimiser(layer.w);
}

void MlpArm::gather_weights(Step& step) {
    if (!spec_.ranks.sharded()) return;
    step.fork();
    place_.collective->use(step.side);
    std::vector<SharedWeight> weights;
    for (const auto& layer : layers_) weights.push_back(shared(*layer));
    scale_blocks(weights, step);
    for (std::size_t l = 0; l < weights.size(); ++l) {
        gather({&weights[l], 1}, step);
        step.record(events_.gathered[l]);
    }
}

void MlpArm::share_biases(const Step& step) {
    BiasUpdates sums = bias_updates(), updates = sums;
    auto* next = static_cast<float*>(bucket_.get());
    for (int l = 0; l < sums.layers; ++l) {
        sums.layer[l].db = next;
        updates.layer[l].partials = next;
        updates.layer[l].tiles = 1;
        next += updates.layer[l].padded;
    }
    sum_biases(sums, step.side);
    step.tell(Part::bookkeeping);
    share_bucket(bucket_, step);
    update_biases(updates, inputs(), input_slots(), step.arm, finite_.get(), step.side, adamw(),
                  gradient_factor());
    step.tell(Part::bookkeeping);
}

void MlpArm::update_with_ranks(Step& step) {
    step.fork();
    place_.collective->use(step.side);
    add_slot(x_of(*layers_.front(), step));
    share_amaxes(std::vector<bool>(static_cast<std::size_t>(tensors_), true), step);
    share_biases(step);
    for (std::size_t l = layers_.size(); l-- > 0;) {
        MlpLayer& layer = *layers_[l];
        add_gradient(layer, step);
        step.fork();
        const SharedWeight weight = shared(layer);
        share_gradients({&weight, 1}, step);
        optimise(layer, step, step.side);
    }
}

}  // namespace fp8lab::cuda
