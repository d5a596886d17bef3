// What a rank of several does beside a step of its own, whatever the model: core/trainer/ranks on a GPU.
#include <algorithm>
#include <cstring>

#include "kernels/arm/arm.h"
#include "kernels/ranks/launch.h"

namespace fp8lab::cuda {
namespace {

// Of the scale states at the places `index`, as many as a launch takes; one that has none where there are none.
std::vector<SharedAmaxes> in_launches(ScaleState* states, const std::vector<int>& index) {
    std::vector<SharedAmaxes> out(1);
    out.front().states = states;
    out.front().all = static_cast<int>(index.size());
    for (const int one : index) {
        if (out.back().count == kMostRankValues) {
            SharedAmaxes next = out.front();
            next.first = out.back().first + kMostRankValues;
            next.count = 0;
            out.push_back(next);
        }
        out.back().index[out.back().count++] = one;
    }
    return out;
}

bool scales_codes(const SharedWeight& weight) { return weight.block && weight.block->as == Sent::codes; }

}  // namespace

WeightBlock CudaArm::empty_block(TensorId weight, Shape whole) const {
    WeightBlock block;
    block.rows = block_rows(static_cast<std::size_t>(whole.rows), place_.count);
    const int each = static_cast<int>(block.rows), own = std::clamp(whole.rows - place_.rank * each, 0, each);
    block.shape = {own, whole.cols, padded(each), whole.padded_cols};
    const Recipe here = plan_.recipe_of(recipe_, weight);
    block.as = sent_of(spec_.ranks, here, gemm_engine(engine_, recipe_of_gemm(here, Gemm::fprop)));
    return block;
}

// Otherwise the optimiser, or the owner of each block, has cast them.
bool CudaArm::casts_gathered(const Slot& weight, const WeightBlock& block) {
    return block.gathered.bytes() > 0 && weight.cast;
}

int CudaArm::ranks_that_cast(TensorId id) const {
    const WeightBlock* const block = block_of(id);
    return block && !casts_gathered(*slots_[id.index], *block) ? 1 : place_.count;
}

// What the update of a block leaves beside the master weights.
CastTarget CudaArm::block_target(const SharedWeight& weight, bool with_stats) const {
    const Slot& w = *weight.w;
    const WeightBlock& block = *weight.block;
    CastTarget target;
    target.element = Element::f32;  // nothing is stored
    if (block.as == Sent::fp32 || (block.as == Sent::codes && scaled_from_itself(w))) return target;
    target.element = block.as == Sent::codes ? Element::e4m3 : Element::bf16;
    target.rows = block.sent.get() ? block.sent.get() : weight.master->get();
    target.state = spare_state_.get();
    if (casts_gathered(w, block)) return target;
    target.state = state(w);
    target.scaled = w.plan.scaled;
    target.stats_partials = with_stats ? w.stats.get() : nullptr;
    return target;
}

// What an update has sent, from the master weights.
void CudaArm::send_block(const SharedWeight& weight, cudaStream_t stream) {
    const WeightBlock& block = *weight.block;
    if (block.shape.rows == 0 || !block.sent.get()) return;
    if (block.as == Sent::fp32) {
        const std::size_t count = elements(block.shape);
        auto* const to = static_cast<float*>(block.sent.get());
        const auto* const from = static_cast<const float*>(weight.master->get());
        if (sent_format(spec_.ranks, plan_.recipe_of(recipe_, weight.w->id)).name == "fp32")
            check(cudaMemcpyAsync(to, from, count * sizeof(float), cudaMemcpyDeviceToDevice, stream),
                  "block");
        else
            round_to_bf16(from, to, static_cast<long long>(count), stream);
        return;
    }
    const CastTarget target = block_target(weight, false);
    if (target.element != Element::f32)
        cast_matrix(weight.master->get(), weight.master->element(), block.shape, target, Pass::cast, stream);
}

// Replaces the amaxes of the scale states by the largest of all ranks; and whether the arm goes on.
void CudaArm::share_largest(const std::vector<int>& index, const StepContext& step) {
    const auto launches = in_launches(states_now_, index);
    for (const SharedAmaxes& some : launches) pack_amaxes(some, step.arm, rank_values_.get(), step.side);
    const RankValues values{place_.rank, rank_values_.get()};
    watched(Part::network, step.side, [&] {
        place_.collective->all_reduce_max({&values, 1}, index.size() + 1);
    });
    for (const SharedAmaxes& some : launches) unpack_amaxes(some, rank_values_.get(), step.arm, step.side);
}

// Current scaling of codes: one scale from the amaxes of all blocks.
void CudaArm::scale_blocks(std::span<const SharedWeight> weights, const StepContext& step) {
    std::vector<int> index;
    const auto for_each = [&](const auto& visit) {
        for (const SharedWeight& weight : weights)
            if (scales_codes(weight) && scaled_from_itself(*weight.w)) visit(weight);
    };
    const auto cast_block = [&](const SharedWeight& weight, void* to, Pass pass) {
        CastTarget target;
        target.element = Element::e4m3;
        target.rows = to;
        target.state = state(*weight.w);
        target.scaled = true;
        if (pass == Pass::cast) target.stats_partials = step.with_stats ? weight.w->stats.get() : nullptr;
        if (weight.block->shape.rows > 0)
            cast_matrix(weight.master->get(), weight.master->element(), weight.block->shape, target, pass,
                        step.side);
    };
    for_each([&](const SharedWeight& weight) {
        index.push_back(weight.w->state);
        cast_block(weight, nullptr, Pass::amax_only);
    });
    if (index.empty()) return;
    share_largest(index, step);
    for_each([&](const SharedWeight& weight) {
        scale_from_amax(state(*weight.w), controls(*weight.w), step.side);
        cast_block(weight, weight.block->sent.get(), Pass::cast);
    });
}

void CudaArm::gather(std::span<const SharedWeight> weights, const StepContext& step) {
    const auto send = [&] {
        for (const SharedWeight& weight : weights) {
            const WeightBlock& block = *weight.block;
            void* const to = block.gathered.get() ? block.gathered.get() : weight.w->first.get();
            const RankBuffers one{place_.rank, block.sent.get() ? block.sent.get() : weight.master->get(),
                                  to};
            place_.collective->all_gather({&one, 1}, block.elements() * bytes_of(block.as));
        }
    };
    watched(Part::network, step.side, [&] { place_.collective->together(send); });
    for (const SharedWeight& weight : weights) {
        const Slot& w = *weight.w;
        if (!scales_codes(weight)) continue;
        if (w.second.get()) transpose_codes(w.first.get(), w.shape, w.second.get(), step.side);
        if (weight.block->shape.rows == 0) give_scale_inv(state(w), step.side);
    }
    step.tell(Part::network);
}

// Of delayed scales, and whether the arm goes on. Then all records and scales.
void CudaArm::share_amaxes(const std::vector<bool>& chosen, const StepContext& step) {
    std::vector<int> index;
    for_each_cast([&](const Slot& slot) {
        if (!chosen[slot.id.index] || slot.source != ScaleSource::delayed || !slot.plan.scaled) return;
        const bool weight = slot.tensor == TensorClass::w;
        const WeightBlock* const block = weight ? block_of(slot.id) : nullptr;
        if (weight ? block && block->as == Sent::codes : spec_.ranks.amax == RankAmax::reduced)
            index.push_back(slot.state);
    });
    share_largest(index, step);
    step.tell(Part::network);
    record_tensors(chosen, step);
    if (spec_.accumulate.micro_batches > 1) return;  // the record has the largest of the micro-batches
    for (const SharedAmaxes& some : in_launches(states_now_, index))
        record_own_amaxes(some, rank_values_.get(), tensor_results_.get(), casts_, step.arm, step.side);
}

void CudaArm::share_gradients(std::span<const SharedWeight> weights, const StepContext& step) {
    const RankSum& how = find_rank_sum(spec_.ranks.sum);
    for (const SharedWeight& weight : weights) {
        if (weight.sent_gradient->bytes() == 0) continue;
        CastTarget target;
        target.element = summed_in();
        target.rows = weight.sent_gradient->get();
        target.state = spare_state_.get();
        cast_matrix(weight.gradient->get(), weight.gradient->element(), weight.w->shape, target, Pass::cast,
                    step.side);
    }
    const auto each = [&](const auto& visit) {
        place_.collective->together([&] {
            for (const SharedWeight& weight : weights) {
                const bool sent = weight.sent_gradient->bytes() > 0;
                void* const values = sent ? weight.sent_gradient->get() : weight.gradient->get();
                visit(weight, values, elements(weight.w->shape) / static_cast<std::size_t>(place_.count));
            }
        });
    };
    watched(Part::network, step.side, [&] {
        each([&](const SharedWeight& weight, void* values, std::size_t part) {
            const WeightBlock* const block = weight.block;
            const RankBuffers one{place_.rank, values,
                                  block ? block->gradient.get() : own_part(values, part, how)};
            place_.collective->reduce_scatter(how, {&one, 1}, block ? block->elements() : part);
        });
        if (spec_.ranks.sharded()) return;
        each([&](const SharedWeight&, void* values, std::size_t part) { gather_parts(values, part, how); });
    });
    step.tell(Part::network);
}

// Where this rank's part of `part` values lies in an array of all.
void* CudaArm::own_part(void* values, std::size_t part, const RankSum& how) const {
    const std::size_t bytes = part * static_cast<std::size_t>(storage_bytes(how.kept()));
    return static_cast<std::byte*>(values) + static_cast<std::size_t>(place_.rank) * bytes;
}

void CudaArm::gather_parts(void* values, std::size_t part, const RankSum& how) {
    const RankBuffers one{place_.rank, own_part(values, part, how), values};
    place_.collective->all_gather({&one, 1}, part * static_cast<std::size_t>(storage_bytes(how.kept())));
}

// FP32 gradients, as many as a multiple of the ranks.
void CudaArm::share_bucket(const Memory& bucket, const StepContext& step) {
    const RankSum& how = find_rank_sum("fp32");
    const std::size_t part = bucket.bytes() / sizeof(float) / static_cast<std::size_t>(place_.count);
    watched(Part::bucket, step.side, [&] {
        const RankBuffers one{place_.rank, bucket.get(), own_part(bucket.get(), part, how)};
        place_.collective->reduce_scatter(how, {&one, 1}, part);
        gather_parts(bucket.get(), part, how);
    });
    step.tell(Part::bucket);
}

std::vector<float> CudaArm::whole(const Parameters& part, Shape shape, const WeightBlock* block,
                                  cudaStream_t stream) const {
    if (!block || !part.get()) return part.read();
    const std::size_t bytes = part.element() == Element::bf16 ? 2 : 4;
    Memory all(elements(shape) * bytes);
    place_.collective->use(stream);
    const RankBuffers one{place_.rank, part.get(), all.get()};
    place_.collective->all_gather({&one, 1}, block->elements() * bytes);
    wait_for(place_, stream, "the weights of a checkpoint");
    return Parameters(part.element(), shape, std::move(all)).read();
}

std::vector<float> CudaArm::part_of(const std::vector<float>& whole, const WeightBlock* block) const {
    if (!block || whole.empty()) return whole;
    const auto cols = static_cast<std::size_t>(block->shape.cols);
    const std::size_t first = static_cast<std::size_t>(place_.rank) * block->rows * cols,
                      count = static_cast<std::size_t>(block->shape.rows) * cols;
    if (count == 0) return {};
    return {whole.begin() + static_cast<std::ptrdiff_t>(first),
            whole.begin() + static_cast<std::ptrdiff_t>(first + count)};
}

}  // namespace fp8lab::cuda
