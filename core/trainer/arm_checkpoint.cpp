// CPU arm <-> checkpoint.
#include <algorithm>

#include "core/trainer/arm.h"
#include "core/trainer/checkpoint.h"

namespace fp8lab {

std::vector<ScaleCheckpoint> Arm::delayed_scales(const RecipeCasts& casts) const {
    std::vector<ScaleCheckpoint> out;
    for (std::size_t i = 0; i < plan().tensors.size(); ++i) {
        const TensorId id{static_cast<std::uint16_t>(i)};
        for (const Along along : {Along::cols, Along::rows}) {
            const bool split = casts.is_split(id);
            const DelayedScale* delayed = casts.delayed(id, along);
            if (!delayed || (!split && along == Along::rows)) continue;
            out.push_back({id, delayed->scale(), delayed->scale_age(), delayed->history(), {}, {}});
            if (split) out.back().gemm = gemm_of(plan().tensor(id).tensor, along);
        }
    }
    return out;
}

ArmCheckpoint Arm::checkpoint() const {
    ArmCheckpoint checkpoint{.recipe = recipe_text(casts().recipe()), .parameters = {}, .scales = {}};
    for (std::size_t i = 0; i < moments_.size(); ++i) {
        const auto values = value(i);
        checkpoint.parameters.push_back({{values.begin(), values.end()}, moments_[i], {}});
    }
    for (std::size_t i = 0; i < storage_scales_.size(); ++i)
        checkpoint.parameters[weights_[i]].storage_scale = storage_scales_[i];
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        const std::optional<int> rank = several_ranks() ? std::optional(static_cast<int>(r)) : std::nullopt;
        for (ScaleCheckpoint& scale : delayed_scales(ranks_[r].casts)) {
            scale.rank = rank;
            checkpoint.scales.push_back(std::move(scale));
        }
    }
    for (const std::size_t i : weights_)
        for (const Along along : {Along::cols, Along::rows}) {
            const TensorId id = *plan().parameters[i].operand;
            if (const auto& kept = casts().kept(id, along).values; !kept.empty())
                checkpoint.kept.push_back({id, gemm_of(TensorClass::w, along), kept});
        }
    if (scaler_.is_on() || scaler_.state().skipped > 0) checkpoint.scaler = scaler_.state();
    return checkpoint;
}

void Arm::restore(const ArmCheckpoint& checkpoint) {
    for (std::size_t i = 0; i < moments_.size(); ++i) {
        std::ranges::copy(checkpoint.parameters[i].values, value(i).begin());
        moments_[i] = checkpoint.parameters[i].moments;
    }
    if (!stores_fp32()) {
        std::vector<float> stored = scales_for_weights();
        for (std::size_t i = 0; i < stored.size(); ++i)
            if (const auto scale = checkpoint.parameters[weights_[i]].storage_scale) stored[i] = *scale;
        use_storage_scales(std::move(stored));
    }
    for (const KeptCheckpoint& k : checkpoint.kept) {
        const auto& shape =
            std::ranges::find(plan().parameters, std::optional(k.id), &ParameterSpec::operand)->shape;
        Matrix<float> cast(shape[0], shape[1]);
        cast.values = k.values;
        change_casts([&](RecipeCasts& each) {
            each.restore_kept(k.id, k.gemm == Gemm::fprop ? Along::cols : Along::rows, cast);
        });
    }
    if (checkpoint.scaler) scaler_.restore(*checkpoint.scaler);
    for (const ScaleCheckpoint& s : checkpoint.scales)
        for (const Along along : {Along::cols, Along::rows})
            if (!s.gemm || *s.gemm == gemm_of(plan().tensor(s.id).tensor, along))
                ranks_[static_cast<std::size_t>(s.rank.value_or(0))].casts.restore_delayed(
                    s.id, along, s.scale, s.scale_age, s.history);
}

}  // namespace fp8lab
