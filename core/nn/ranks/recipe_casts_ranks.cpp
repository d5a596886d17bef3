// What the ranks of a data-parallel training have of each other: gathered weights, amaxes, one record.
#include "core/nn/recipe_casts.h"
#include "core/scaling/scale_rule.h"

namespace fp8lab {

// The codes of one cast are those of every micro-batch: they are counted once, as a cast that is kept.
const Matrix<float>& RecipeCasts::read_gathered(TensorId id, Along along, const Matrix<float>& value) {
    State& s = state(id);
    Side& side = s.side(along);
    const bool first = !side.seen() && !evaluates_;
    if (!first) return *s.gathered.values;
    side.casted = true;
    QuantizeResult result;
    result.stats = s.gathered.stats;
    result.scale = s.gathered.scale;
    note(id, side, value, result);
    side.scale_amax = s.gathered.amax;
    if (id == watched_) watch(id, side, value, *s.gathered.values);
    return *s.gathered.values;
}

float RecipeCasts::scale_for(TensorId weight, float amax) const {
    const State& s = state(weight);
    const Side& side = s.sides[0];
    if (is_delayed(s, side)) return side.delayed.scale();
    return scale_from_amax(amax, static_cast<float>(max_finite(*side.plan.format)), side.plan.margin, 1,
                           side.plan.pow2, side.plan.zero_amax == ZeroAmax::inf);
}

CastOptions RecipeCasts::cast_options(TensorId weight, float scale, std::size_t first) const {
    const CastPlan& plan = state(weight).sides[0].plan;
    const QuantizeRequest request = request_of(weight, Along::cols, {});
    return {plan.rounding, plan.overflow, scale, request.seed, request.stream, first};
}

std::vector<float> RecipeCasts::activation_amaxes() const {
    std::vector<float> out;
    for (std::size_t i = 0; i < states_.size(); ++i)
        for (const Side& side : states_[i].sides)
            if (side.delayed_scale && plan_.tensors[i].tensor != TensorClass::w)
                out.push_back(side.scale_amax);
    return out;
}

void RecipeCasts::replace_activation_amaxes(std::span<const float> amaxes) {
    auto next = amaxes.begin();
    for (std::size_t i = 0; i < states_.size(); ++i)
        for (Side& side : states_[i].sides)
            if (side.delayed_scale && plan_.tensors[i].tensor != TensorClass::w) side.scale_amax = *next++;
}

void RecipeCasts::add_records_of(const RecipeCasts& other) {
    for (std::size_t i = 0; i < states_.size(); ++i)
        for (std::size_t k = 0; k < 2; ++k) {
            Side& side = states_[i].sides[k];
            const Side& theirs = other.states_[i].sides[k];
            if (!side.seen() || !theirs.seen() || !side.record.applies) continue;
            // The scale that the largest amax was cast with: whoever multiplies both sees whether it saturated.
            const float scale = theirs.stats.amax > side.stats.amax ? theirs.record.scale : side.record.scale;
            side.stats += theirs.stats;
            side.saturated += theirs.saturated;
            side.powers.add(theirs.powers);
            describe(side, scale);
        }
}

}  // namespace fp8lab
