#include "kernels/arm/batches.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/nn/model.h"
#include "kernels/layers/launch.h"

namespace fp8lab::cuda {
namespace {

std::size_t size(int n) { return static_cast<std::size_t>(n); }
int tokens_of(const TrainSpec& spec) { return spec.batch * spec.sizes.at("context"); }
std::size_t token_stride(const TrainSpec& spec) {
    return static_cast<std::size_t>(
        TokenRing{.rows = tokens_of(spec), .vocabulary = spec.vocabulary}.stride());
}

}  // namespace

Batches::Batches(const TrainSpec& spec, const TrainSpec* all, int rank)
    : spec_(spec),
      rank_(rank),
      ranks_(all ? all->ranks.count : 1),
      task_(make_task(all ? *all : spec)),
      data_slots_(data_slots(spec)),
      inputs_(kInputSlots),
      host_inputs_(kInputSlots),
      scored_(kInputSlots, static_cast<double>(spec.batch) * ranks_) {
    const std::size_t slots = size(data_slots_), batch = size(spec.batch);
    if (find_model(spec.model).tokens) {
        tokens_ = Buffer<std::int32_t>(slots * token_stride(spec));
        host_tokens_ = std::make_unique<Pinned<std::int32_t>>(tokens_.size());
        return;
    }
    const std::size_t x = batch * size(spec.layers.front()), y = batch * size(spec.layers.back());
    x_ = Buffer<float>(slots * x);
    y_ = Buffer<float>(slots * y);
    if (data_slots_ == 1) {
        const auto& drawn = std::get<DenseBatch>(draw(0));
        x_.upload(drawn.x.values);
        y_.upload(drawn.y.values);
        batch_ = {}, part_ = {};
        return;
    }
    host_x_ = std::make_unique<Pinned<float>>(slots * x);
    host_y_ = std::make_unique<Pinned<float>>(slots * y);
}

const Batch& Batches::draw(int step) {
    task_->draw(step, batch_);
    if (ranks_ == 1) return batch_;
    cut_part(batch_, ranks_, rank_, part_);
    return part_.batch;
}

StepRings Batches::rings(bool overlap) const {
    return {x_.get(), y_.get(), tokens_.get(), data_slots_, inputs_.get(), kInputSlots, overlap};
}

void Batches::stage_input(std::size_t slot, const StepInput& input, cudaStream_t stream) {
    StepInput& staged = host_inputs_.values()[slot];
    staged = input;
    check(cudaMemcpyAsync(inputs_.get() + slot, &staged, sizeof staged, cudaMemcpyHostToDevice, stream),
          "step inputs");
}

void Batches::stage(int step, double lr, float poison, cudaStream_t stream) {
    const std::size_t slot = size(step % kInputSlots);
    StepInput input;
    input.lr = static_cast<float>(lr);
    input.rate = static_cast<float>(lr / (1 - std::pow(spec_.beta1, step + 1)));
    input.spread = static_cast<float>(1 / std::sqrt(1 - std::pow(spec_.beta2, step + 1)));
    input.decay = static_cast<float>(lr * spec_.weight_decay);
    input.poison = poison;
    stage_input(slot, input, stream);
    if (data_slots_ == 1) return;
    const Batch& batch = draw(step);
    if (host_tokens_)
        copy_tokens(std::get<TokenBatch>(batch), scored_in(std::get<TokenBatch>(batch_)), slot, stream);
    else
        copy_dense(std::get<DenseBatch>(batch), slot, stream);
}

bool Batches::stage_held_out(int i, int piece, int step, cudaStream_t stream) {
    if (!task_->held_out(i, batch_)) return false;
    auto& batch = std::get<TokenBatch>(batch_);
    const std::size_t rows = size(tokens_of(spec_)), all = batch.size(), first = size(piece) * rows;
    if (first >= all) return false;
    if (all != rows) {
        const TokenBatch whole = std::exchange(batch, {});
        batch.sequences = size(spec_.batch);
        batch.context = whole.context;
        for (std::size_t r = first; r < first + rows; ++r) {
            batch.tokens.push_back(whole.tokens[r % all]);
            batch.targets.push_back(whole.targets[r % all]);
            batch.scored.push_back(r < all && whole.is_scored(r));
        }
    }
    stage_input(size(step % kInputSlots), {}, stream);
    copy_tokens(batch, scored_in(batch), size(step % kInputSlots), stream);
    return true;
}

void Batches::copy_dense(const DenseBatch& batch, std::size_t slot, cudaStream_t stream) {
    const auto copy = [&](const std::vector<float>& from, Pinned<float>& host, Buffer<float>& to) {
        float* const staged = host.values().data() + slot * from.size();
        std::ranges::copy(from, staged);
        check(cudaMemcpyAsync(to.get() + slot * from.size(), staged, from.size() * sizeof(float),
                              cudaMemcpyHostToDevice, stream),
              "batch");
    };
    copy(batch.x.values, *host_x_, x_);
    copy(batch.y.values, *host_y_, y_);
}

// The rows sorted by their token are for the embedding's gradient: a counting sort.
void Batches::copy_tokens(const TokenBatch& batch, std::size_t scored, std::size_t slot,
                          cudaStream_t stream) {
    const std::size_t rows = batch.size(), stride = token_stride(spec_);
    const std::span<std::int32_t> staged = host_tokens_->values().subspan(slot * stride, stride);
    auto take = [at = std::size_t{0}, staged](std::size_t count) mutable {
        return staged.subspan(std::exchange(at, at + count), count);
    };
    const auto tokens = take(rows), targets = take(rows), order = take(rows),
               starts = take(size(spec_.vocabulary) + 1), count = take(1);
    std::ranges::fill(starts, 0);
    for (const int token : batch.tokens) ++starts[size(token) + 1];
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    std::vector<std::int32_t> next(starts.begin(), starts.end());
    count[0] = static_cast<std::int32_t>(scored);
    for (std::size_t r = 0; r < rows; ++r) {
        tokens[r] = batch.tokens[r];
        targets[r] = batch.is_scored(r) ? batch.targets[r] : -1;
        order[size(next[size(batch.tokens[r])]++)] = static_cast<std::int32_t>(r);
    }
    scored_[slot] = static_cast<double>(scored);
    check(cudaMemcpyAsync(tokens_.get() + slot * stride, staged.data(), staged.size_bytes(),
                          cudaMemcpyHostToDevice, stream),
          "batch");
}

}  // namespace fp8lab::cuda
