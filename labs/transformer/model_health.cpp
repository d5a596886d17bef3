#include "labs/transformer/model_health.h"

#include <algorithm>
#include <cmath>

#include "labs/live/looks.h"

namespace fp8lab::transformer {

void Health::append(const ModelPlan& plan, std::span<const StepRecord> records) {
    if (records.empty()) return;
    tensors_.resize(plan.tensors.size());
    lost_.resize(plan.tensors.size());
    casts_.resize(plan.tensors.size());
    gemms_.resize(plan.gemms.size());
    for (const StepRecord& record : records) {
        std::vector<bool> in_this_step(plan.gemms.size(), false);
        for (std::size_t i = 0; i < std::min(record.tensors.size(), tensors_.size()); ++i) {
            const TensorRecord& now = record.tensors[i];
            TensorHealth& health = tensors_[i];
            const auto known = [&](float value) { return now.applies ? static_cast<double>(value) : kNan; };
            health.amax = known(now.amax);
            health.scale = known(now.scale);
            health.sqnr_db = known(now.sqnr_db);
            health.kurtosis = known(now.kurtosis);
            health.lost_pct = known(now.underflow_pct);
            health.saturated_pct = known(now.overflow_pct);
            lost_[i].push_back(health.lost_pct);
            if (const double casts = known(now.saturated_casts); !std::isnan(casts)) {
                casts_[i].saturated += casts;
                health.saturated_casts = casts_[i].saturated / ++casts_[i].steps;
            }
            if (!now.applies || !(now.overflow_pct > 0)) continue;
            ++health.saturated_steps;
            in_this_step[plan.tensors[i].gemm] = true;
        }
        for (std::size_t g = 0; g < gemms_.size(); ++g) gemms_[g] += in_this_step[g] ? 1 : 0;
    }
    for (std::size_t i = 0; i < tensors_.size(); ++i)
        tensors_[i].tail_lost_pct = live::tail_mean(lost_[i], live::kTailSteps);
}

void Health::restore(std::vector<TensorHealth> tensors, std::vector<int> gemms) {
    tensors_ = std::move(tensors);
    gemms_ = std::move(gemms);
    lost_.assign(tensors_.size(), {});
    casts_.assign(tensors_.size(), {});
}

bool is_narrow(const Recipe& recipe, const ModelPlan& plan, TensorId id) {
    const FormatInfo* format = live::cast_format(recipe, plan, id);
    return format && width_bits(*format) <= 8;
}

Worst worst_of(const Health& health, const ModelPlan& plan, const Recipe& recipe, bool gradients) {
    Worst worst;
    for (std::size_t i = 0; i < health.tensors().size(); ++i) {
        const TensorClass kind = plan.tensors[i].tensor;
        if (kind != (gradients ? TensorClass::dy : TensorClass::x)) continue;
        if (!is_narrow(recipe, plan, {static_cast<std::uint16_t>(i)})) continue;
        const double lost = health.tensors()[i].tail_lost_pct;
        if (std::isnan(lost) || lost <= worst.lost_pct) continue;
        worst = {plan.tensors[i].name, lost};
    }
    return worst;
}

}  // namespace fp8lab::transformer
