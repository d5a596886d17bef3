// Delayed scaling in Transformer Engine's unfused order (its common/recipe/delayed_scaling.cu and
// pytorch/quantization.py):
//   1. cast with the scale fixed at the end of the step before
//   2. amax of the unscaled tensor into slot 0 of the history
//   3. reduce the history: max of all slots, or slot 0; or, which Transformer Engine does not have, ema_of()
//   4. roll: the oldest, slot 1, drops out; slot 0 moves to the end and becomes 0
//   5. scale = max * 2^-margin / amax; an amax of 0 (but for ZeroAmax::inf) or not finite keeps it, an overflow gives FLT_MAX
#pragma once

#include <vector>

#include "core/scaling/recipe.h"
#include "core/scaling/scale_rule.h"

namespace fp8lab {

class DelayedScale {
  public:
    DelayedScale() = default;
    DelayedScale(int history, AmaxAlgo algo, int margin, int interval, float fp8_max, bool pow2 = false,
                 float ema_decay = 0, ZeroAmax zero_amax = ZeroAmax::keep);
    // The scale that this step's cast uses; 1 at the start.
    float scale() const { return scale_; }
    // The amax history, slot 0 first.
    const std::vector<float>& history() const { return history_; }
    // Updates since the scale was computed, 0 to interval - 1; a resumed run continues with it.
    int scale_age() const { return scale_age_; }
    // Steps 2-5 above with the amax of the unscaled tensor. NaN and Inf stay in the history until they roll
    // out of it. With interval N, step 5 is done in every N-th call.
    void update(float amax);

    // Call it between steps. A shorter history keeps the newest amaxes, a longer one is filled with
    // zeros. Throws usage_error for a length below 1, as the constructor does.
    void set_history(int length);
    void set_margin(int margin) { margin_ = margin; }
    void set_algo(AmaxAlgo algo) { algo_ = algo; }
    // Replaces the state, for example by that of a checkpoint. `history` must not be empty.
    void restore(float scale, int scale_age, std::vector<float> history) {
        scale_ = scale;
        scale_age_ = scale_age;
        history_ = std::move(history);
    }

  private:
    std::vector<float> history_ = {0.0F};
    float scale_ = 1.0F, fp8_max_ = 448.0F;
    AmaxAlgo algo_ = AmaxAlgo::max;
    int margin_ = 0, interval_ = 1, scale_age_ = 0;
    bool pow2_ = false;
    float ema_decay_ = 0;
    ZeroAmax zero_amax_ = ZeroAmax::keep;
};

// One step of `simulate`, which feeds a series of amaxes to a DelayedScale.
struct SimulateStep {
    int step;
    float amax, scale_used, amax_scaled;
    bool saturates;  // amax_scaled would be changed by saturation (> 464 in e4m3, >= 61440 in e5m2)
    std::vector<float> history;  // slot 0 first, after the roll
    float scale_next;
};
struct SimulateSpec {
    const FormatInfo* format = nullptr;  // default e4m3
    int history = 16;
    AmaxAlgo algo = AmaxAlgo::max;
    int margin = 0, interval = 1;
};
std::vector<SimulateStep> simulate(const std::vector<float>& amax, const SimulateSpec& spec);

// Reads an amax file: one value per line, inf and nan allowed, blank lines and lines with '#' skipped. Throws
// input_error with the line.
std::vector<float> parse_amax(std::string_view text, const std::string& where);

}  // namespace fp8lab
