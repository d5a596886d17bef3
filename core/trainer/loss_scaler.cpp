#include "core/trainer/loss_scaler.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "core/threads/parallel.h"

namespace fp8lab {
namespace {

constexpr std::size_t kGrain = 65536;
constexpr float kGrowth = 2, kBackoff = 0.5F;

}  // namespace

void LossScaler::set_recipe(const Recipe& recipe) {
    if (recipe.loss_scale != first_)
        state_.scale = recipe.loss_scale > 0 ? recipe.loss_scale : 1, state_.good = 0;
    first_ = recipe.loss_scale;
    interval_ = recipe.growth_interval;
    on_ = recipe.loss_scale > 0;
}

void LossScaler::restore(const LossScalerState& state) {
    state_.skipped = state.skipped;
    if (on_) state_ = state;
}

void LossScaler::scale(std::span<float> dy) const {
    if (!on_) return;
    parallel_for(dy.size(), kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) dy[i] *= state_.scale;
    });
}

bool LossScaler::unscale(std::span<const std::span<float>> gradients) {
    if (!on_) return true;
    std::atomic<bool> finite = true;
    for (const std::span<float> g : gradients)
        parallel_for(g.size(), kGrain, [&](std::size_t begin, std::size_t end) {
            bool all = true;
            for (std::size_t i = begin; i < end; ++i) {
                all &= std::isfinite(g[i]);
                g[i] /= state_.scale;
            }
            if (!all) finite = false;
        });
    if (!finite) {
        state_.scale *= kBackoff;
        state_.good = 0;
        ++state_.skipped;
    } else if (interval_ > 0 && ++state_.good >= interval_) {
        if (std::isfinite(state_.scale * kGrowth)) state_.scale *= kGrowth;
        state_.good = 0;
    }
    return finite;
}

}  // namespace fp8lab
