// What a rank of several does beside a step of its own: core/trainer/ranks on a GPU.
//
// Sharded weights are gathered at the beginning of a step, in the order in which layers read them, and each layer waits for its
// own. In the update the sums of gradients run beside the next weight gradient, and each rank updates its blocks.
#include <algorithm>

#include "kernels/mlp/step.h"
#include "kernels/ranks/launch.h"

namespace fp8lab::cuda {
namespace {

std::size_t block_elements(const MlpBlock& block) {
    return block.rows * static_cast<std::size_t>(block.shape.padded_cols);
}

RankBuffers buffers(const RankPlace& place, const void* in, void* out) { return {place.rank, in, out}; }

}  // namespace

void MlpArm::allocate_ranks(const ArmMemory& plan) {
    for (const auto& layer : layers_)
        layer->sent_gradient = Memory(plan.bytes(ArmPart::sent_gradient, layer->number));
    bias_sums_ = Buffer<float>(plan.bytes(ArmPart::bias_sums) / sizeof(float));
    rank_values_ = Buffer<float>(plan.bytes(ArmPart::rank_values) / sizeof(float));
    spare_state_ = Buffer<ScaleState>(1);
}

MlpBlock MlpArm::make_block(const ArmMemory& plan, const MlpLayer& layer) const {
    const auto bytes = [&](ArmPart part) { return plan.bytes(part, layer.number); };
    const Shape w = layer.w.shape;
    MlpBlock block;
    block.rows = block_rows(static_cast<std::size_t>(w.rows), place_.count);
    const int each = static_cast<int>(block.rows), own = std::clamp(w.rows - place_.rank * each, 0, each);
    block.shape = {own, w.cols, padded(each), w.padded_cols};
    block.gradient = Memory(bytes(ArmPart::block_gradient));
    block.sent = Memory(bytes(ArmPart::block_sent));
    block.gathered = Memory(bytes(ArmPart::gathered));
    block.as = sent_of(spec_.ranks, plan_.recipe_of(recipe_, layer.w.id), layer.w.engine);
    // Padding that no cast reaches, and blocks of ranks that have no rows.
    const auto clear = [](const Memory& memory) {
        if (memory.bytes() > 0) fill_zeros(memory.get(), memory.bytes());
    };
    clear(block.sent);
    clear(block.gathered);
    clear(layer.w.first);
    return block;
}

bool MlpArm::keeps(TensorId id) const {
    return plan_.tensor(id).tensor != TensorClass::w || !spec_.ranks.sharded();
}

int MlpArm::ranks_that_cast(TensorId id) const {
    if (plan_.tensor(id).tensor != TensorClass::w || !spec_.ranks.sharded()) return place_.count;
    return casts_weights(*layers_[static_cast<std::size_t>(MlpTensor(id).layer) - 1]) ? place_.count : 1;
}

// Otherwise the optimiser, or the owner of each block, has cast them.
bool MlpArm::casts_weights(const MlpLayer& layer) const {
    return layer.block ? layer.block->gathered.bytes() > 0 && layer.w.cast : !cast_by_optimiser(layer.w);
}

// What the update of a block leaves beside the master weights.
CastTarget MlpArm::block_target(const MlpLayer& layer, bool with_stats) const {
    const MlpBlock& block = *layer.block;
    CastTarget target;
    target.element = Element::f32;  // nothing is stored
    if (block.as == Sent::fp32 || (block.as == Sent::codes && scaled_from_itself(layer.w))) return target;
    target.element = block.as == Sent::codes ? Element::e4m3 : Element::bf16;
    target.rows = block.sent.get() ? block.sent.get() : layer.master.get();
    target.state = spare_state_.get();
    if (casts_weights(layer)) return target;
    target.state = state(layer.w);
    target.scaled = layer.w.plan.scaled;
    target.stats_partials = with_stats ? layer.w.stats.get() : nullptr;
    return target;
}

// What an update has sent, from the master weights.
void MlpArm::send_block(MlpLayer& layer, cudaStream_t stream) {
    const MlpBlock& block = *layer.block;
    if (block.shape.rows == 0 || !block.sent.get()) return;
    if (block.as == Sent::fp32) {
        const std::size_t count = elements(block.shape);
        auto* const to = static_cast<float*>(block.sent.get());
        const auto* const from = static_cast<const float*>(layer.master.get());
        if (sent_format(spec_.ranks, plan_.recipe_of(recipe_, layer.w.id)).name == "fp32")
            check(cudaMemcpyAsync(to, from, count * sizeof(float), cudaMemcpyDeviceToDevice, stream),
                  "block");
        else
            round_to_bf16(from, to, static_cast<long long>(count), stream);
        return;
    }
    const CastTarget target = block_target(layer, false);
    if (target.element != Element::f32)
        cast_matrix(layer.master.get(), layer.master.element(), block.shape, target, Pass::cast, stream);
}

// Current scaling of codes: one scale from the amaxes of all blocks.
void MlpArm::scale_blocks(const Step& step) {
    SharedAmaxes amaxes;
    amaxes.states = states_now_;
    for (const auto& layer : layers_) {
        if (layer->block->as != Sent::codes || !scaled_from_itself(layer->w)) continue;
        amaxes.index[amaxes.count++] = layer->w.state;
        CastTarget target;
        target.element = Element::e4m3;
        target.state = state(layer->w);
        target.scaled = true;
        if (layer->block->shape.rows > 0)
            cast_matrix(layer->master.get(), layer->master.element(), layer->block->shape, target,
                        Pass::amax_only, step.side);
    }
    if (amaxes.count == 0) return;
    pack_amaxes(amaxes, step.arm, rank_values_.get(), step.side);
    const RankValues values{place_.rank, rank_values_.get()};
    watched(Part::network, step.side, [&] {
        place_.collective->all_reduce_max({&values, 1}, static_cast<std::size_t>(amaxes.count) + 1);
    });
    unpack_amaxes(amaxes, rank_values_.get(), step.arm, step.side);
    for (const auto& layer : layers_) {
        if (layer->block->as != Sent::codes || !scaled_from_itself(layer->w)) continue;
        CastTarget target;
        target.element = Element::e4m3;
        target.rows = layer->block->sent.get();
        target.state = state(layer->w);
        target.scaled = true;
        target.stats_partials = step.with_stats ? layer->w.stats.get() : nullptr;
        scale_from_amax(target.state, controls(layer->w), step.side);
        if (layer->block->shape.rows > 0)
            cast_matrix(layer->master.get(), layer->master.element(), layer->block->shape, target, Pass::cast,
                        step.side);
    }
}

void MlpArm::gather_weights(Step& step) {
    if (!spec_.ranks.sharded()) return;
    step.fork();
    place_.collective->use(step.side);
    scale_blocks(step);
    for (const auto& layer : layers_) {
        const MlpBlock& block = *layer->block;
        void* const to = block.gathered.get() ? block.gathered.get() : layer->w.first.get();
        const RankBuffers one =
            buffers(place_, block.sent.get() ? block.sent.get() : layer->master.get(), to);
        watched(Part::network, step.side, [&] {
            place_.collective->all_gather({&one, 1}, block_elements(block) * bytes_of(block.as));
        });
        if (block.as == Sent::codes) {
            if (layer->w.second.get())
                transpose_codes(layer->w.first.get(), layer->w.shape, layer->w.second.get(), step.side);
            if (block.shape.rows == 0) give_scale_inv(state(layer->w), step.side);
        }
        step.record(events_.gathered[static_cast<std::size_t>(layer->number) - 1]);
        step.tell(Part::network);
    }
}

// Of delayed scales, and whether the arm goes on. Then all records and scales.
void MlpArm::share_amaxes(const Step& step) {
    SharedAmaxes amaxes;
    amaxes.states = states_now_;
    for_each_cast([&](const Slot& slot) {
        const bool weights = slot.tensor == TensorClass::w,
                   of_blocks = weights && spec_.ranks.sharded() &&
                               layers_[static_cast<std::size_t>(MlpTensor(slot.id).layer) - 1]->block->as ==
                                   Sent::codes;
        if (slot.source != ScaleSource::delayed || !slot.plan.scaled) return;
        if (of_blocks || (!weights && spec_.ranks.amax == RankAmax::reduced))
            amaxes.index[amaxes.count++] = slot.state;
    });
    pack_amaxes(amaxes, step.arm, rank_values_.get(), step.side);
    const RankValues values{place_.rank, rank_values_.get()};
    watched(Part::network, step.side, [&] {
        place_.collective->all_reduce_max({&values, 1}, static_cast<std::size_t>(amaxes.count) + 1);
    });
    unpack_amaxes(amaxes, rank_values_.get(), step.arm, step.side);
    step.tell(Part::network);
    record_now(std::vector<bool>(static_cast<std::size_t>(tensors_), true), step);
    if (parts() == 1)  // else the record has the largest of the micro-batches
        record_own_amaxes(amaxes, rank_values_.get(), tensor_results_.get(), casts_, step.arm, step.side);
}

void MlpArm::sum_over_ranks(std::string_view sum, void* values, std::size_t count) {
    const RankSum& how = find_rank_sum(sum);
    const std::size_t each = count / static_cast<std::size_t>(place_.count),
                      bytes = each * (how.format == "bf16" ? 2 : 4);
    void* const mine = static_cast<std::byte*>(values) + static_cast<std::size_t>(place_.rank) * bytes;
    const RankBuffers add = buffers(place_, values, mine), gather = buffers(place_, mine, values);
    place_.collective->reduce_scatter(how, {&add, 1}, each);
    place_.collective->all_gather({&gather, 1}, bytes);
}

void MlpArm::share_biases(const Step& step) {
    BiasUpdates sums = bias_updates(), updates = sums;
    float* next = bias_sums_.get();
    for (int l = 0; l < sums.layers; ++l) {
        sums.layer[l].db = next;
        updates.layer[l].partials = next;
        updates.layer[l].tiles = 1;
        next += updates.layer[l].padded;
    }
    sum_biases(sums, step.side);
    watched(Part::network, step.side, [&] { sum_over_ranks("fp32", bias_sums_.get(), bias_sums_.size()); });
    step.tell(Part::network);
    update_biases(updates, inputs(), input_slots(), step.arm, finite_.get(), step.side, adamw(),
                  gradient_factor());
    step.tell(Part::bookkeeping);
}

void MlpArm::share_gradient(MlpLayer& layer, Step& step) {
    step.fork();
    const std::size_t count = elements(layer.w.shape);
    void* values = layer.dw.get();
    if (void* const sent = layer.sent_gradient.get()) {
        CastTarget target;
        target.element = spec_.ranks.sum == "bf16" ? Element::bf16 : Element::f32;
        target.rows = sent;
        target.state = spare_state_.get();
        cast_matrix(values, layer.dw.element(), layer.w.shape, target, Pass::cast, step.side);
        values = sent;
    }
    watched(Part::network, step.side, [&] {
        if (!layer.block) return sum_over_ranks(spec_.ranks.sum, values, count);
        const RankBuffers one = buffers(place_, values, layer.block->gradient.get());
        place_.collective->reduce_scatter(find_rank_sum(spec_.ranks.sum), {&one, 1},
                                          block_elements(*layer.block));
    });
    step.tell(Part::network);
}

void MlpArm::update_with_ranks(Step& step) {
    step.fork();
    place_.collective->use(step.side);
    share_amaxes(step);
    share_biases(step);
    for (std::size_t l = layers_.size(); l-- > 0;) {
        MlpLayer& layer = *layers_[l];
        add_gradient(layer, step);
        share_gradient(layer, step);
        optimise(layer, step, step.side);
    }
}

std::vector<float> MlpArm::whole(const MlpLayer& layer, const Parameters& part) const {
    if (!layer.block || !part.get()) return part.read();
    const std::size_t bytes = part.element() == Element::bf16 ? 2 : 4;
    Memory all(elements(layer.w.shape) * bytes);
    place_.collective->use(side_.get());
    const RankBuffers one = buffers(place_, part.get(), all.get());
    place_.collective->all_gather({&one, 1}, block_elements(*layer.block) * bytes);
    wait_for(place_, side_.get(), "the weights of a checkpoint");
    return Parameters(part.element(), layer.w.shape, std::move(all)).read();
}

std::vector<float> MlpArm::part_of(const MlpLayer& layer, const std::vector<float>& whole) const {
    if (!layer.block || whole.empty()) return whole;
    const auto cols = static_cast<std::size_t>(layer.w.shape.cols);
    const std::size_t first = static_cast<std::size_t>(place_.rank) * layer.block->rows * cols,
                      count = static_cast<std::size_t>(layer.block->shape.rows) * cols;
    if (count == 0) return {};
    return {whole.begin() + static_cast<std::ptrdiff_t>(first),
            whole.begin() + static_cast<std::ptrdiff_t>(first + count)};
}

}  // namespace fp8lab::cuda
