// Loss scaling as torch.amp.GradScaler does it, with its growth factor of 2 and backoff factor of 0.5: dy of the loss is
// multiplied by the scale, and weight gradients are divided by it in FP32. A step with an Inf or NaN among them changes
// no weight and halves the scale; `growth_interval` steps in a row without one double it, unless that overflows.
#pragma once

#include <span>

#include "core/scaling/recipe.h"

namespace fp8lab {

struct LossScalerState {
    float scale = 1;
    int good = 0;     // steps without an Inf or NaN since the scale changed
    int skipped = 0;  // steps that changed no weight; AdamW does not count them
};

class LossScaler {
  public:
    // A recipe without a scale after one with: the scaler is off and its skipped steps stay.
    void set_recipe(const Recipe& recipe);
    bool is_on() const { return on_; }
    const LossScalerState& state() const { return state_; }
    void restore(const LossScalerState& state);

    void scale(std::span<float> dy) const;
    // Divides the gradients. Returns false where one is not finite: the step is to be left out.
    bool unscale(std::span<const std::span<float>> gradients);

  private:
    LossScalerState state_;
    bool on_ = false;
    float first_ = 0;
    int interval_ = 0;
};

}  // namespace fp8lab
