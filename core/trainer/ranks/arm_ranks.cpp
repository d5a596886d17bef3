// What the ranks of an arm do together.
#include <algorithm>
#include <cmath>

#include "core/threads/trace.h"
#include "core/trainer/arm.h"

namespace fp8lab {

std::vector<RecipeCasts*> Arm::all_casts() {
    std::vector<RecipeCasts*> out;
    for (Rank& rank : ranks_) out.push_back(&rank.casts);
    return out;
}

void Arm::gather_weights() {
    if (!several_ranks()) return;
    const TraceSpan span("ranks", "gather weights");
    rank_weights_.gather(*collective_, model_->parameters(), all_casts());
}

void Arm::reduce_amaxes() {
    if (!several_ranks() || spec_.ranks.amax == RankAmax::local) return;
    const TraceSpan span("ranks", "reduce amaxes");
    std::vector<std::vector<float>> amaxes;
    for (const Rank& rank : ranks_) amaxes.push_back(rank.casts.activation_amaxes());
    std::vector<RankValues> values;
    for (std::size_t r = 0; r < amaxes.size(); ++r) values.push_back({static_cast<int>(r), amaxes[r].data()});
    collective_->all_reduce_max(values, amaxes.front().size());
    for (std::size_t r = 0; r < amaxes.size(); ++r) ranks_[r].casts.replace_activation_amaxes(amaxes[r]);
}

void Arm::reduce_gradients() {
    const TraceSpan span("ranks", "reduce gradients");
    for (Rank& rank : ranks_) {
        if (spec_.accumulate.micro_batches == 1) continue;  // they are there
        rank.gradients.resize(moments_.size());
        std::vector<std::span<float>> mean;
        for (std::size_t i = 0; i < moments_.size(); ++i) {
            rank.gradients[i].resize(value(i).size());
            mean.emplace_back(rank.gradients[i]);
        }
        rank.sum.mean(mean);
    }
    std::vector<std::span<const std::vector<float>>> views;
    for (const Rank& rank : ranks_) views.emplace_back(rank.gradients);
    rank_gradients_.reduce(*collective_, views, gradients());
}

StepRecord Arm::end_step(int step) {
    const TraceSpan span("scales", "scales and records");
    StepRecord record{.step = step, .tensors = {}};
    reduce_amaxes();
    const auto count = static_cast<double>(ranks_.size());
    for (const Rank& rank : ranks_) {
        record.loss += rank.loss.loss / count;
        record.accuracy += rank.loss.accuracy / count;
    }
    RecipeCasts& first = ranks_.front().casts;
    if (several_ranks()) {
        record.rank_spread = rank_weights_.spread_pct();
        record.sum_error = rank_gradients_.distance().error_pct();
        for (const Rank& rank : ranks_) {
            record.ranks.push_back({.loss = rank.loss.loss});
            if (watch_) record.ranks.back().watched = rank.casts.records()[watch_->index];
        }
    }
    for (std::size_t r = 1; r < ranks_.size(); ++r) {
        first.add_records_of(ranks_[r].casts);
        ranks_[r].casts.end_step();
    }
    record.tensors = first.end_step();
    return record;
}

std::vector<RankState> Arm::rank_states() {
    gather_weights();
    std::vector<RankState> out = rank_weights_.states(model_->parameters());
    const bool finite = std::ranges::all_of(model_->parameters(), [](const Parameter<float>& p) {
        return std::ranges::all_of(p.value, [](float v) { return std::isfinite(v); });
    });
    for (RankState& state : out) state.finite = finite;
    return out;
}

}  // namespace fp8lab
