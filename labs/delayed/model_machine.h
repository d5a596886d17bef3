// The machine that L5 steps through. Transformer Engine's rules, max and most recent, are core's
// DelayedScale; the teaching rules read the same history and differ only in how they reduce it to one amax.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/scaling/delayed.h"

namespace fp8lab::delayed {

// algo: "max", "most_recent" (Transformer Engine's); "ema": e = ema * e + (1 - ema) * amax, begun with the
// first amax, ignoring those not finite; "percentile": of the amaxes in the history by linear interpolation
// between neighbours, as numpy; "static": one scale for ever; "current": each tensor's own amax.
// interval is Transformer Engine's rules' alone.
// order: "te" casts, then records the amax. "notebook" records and computes the scale first, as teaching
// notebooks do: the scale has then seen the tensor that it casts.
struct MachineSpec {
    std::string format = "e4m3", algo = "max", order = "te";
    int history = 4, margin = 0, interval = 1;
    double ema = 0.9, percentile = 90, static_scale = 1;
    bool operator==(const MachineSpec&) const = default;
};

// Why the scale of the next step is what it is.
enum class Outcome {
    computed,
    waiting,     // the interval has not passed
    zero,        // the reduced amax is 0: the scale is kept
    not_finite,  // it is Inf or NaN: the scale is kept
    fixed,       // algo static
    this_tensor  // algo current: the next step will look at its own amax
};

struct MachineStep {
    float amax = 0, scale_used = 1, amax_scaled = 0, scale_next = 1;
    bool saturates = false;  // the cast changes the amax by saturation
    float reduced = 0;       // what the history was reduced to
    Outcome outcome = Outcome::computed;
};

class Machine {
  public:
    explicit Machine(const MachineSpec& spec);
    MachineStep step(float amax);
    // Slot 0 first, as it is now; and as it was when the last amax had been recorded, before the roll.
    const std::vector<float>& history() const { return state_.history(); }
    const std::vector<float>& recorded() const { return recorded_; }

  private:
    float reduce(float amax);
    Outcome update(float amax, float& reduced);

    MachineSpec spec_;
    const FormatInfo& format_;
    float fp8_max_;
    DelayedScale state_;  // of the teaching rules only the history counts
    std::vector<float> recorded_;
    float scale_ = 1;
    std::optional<float> ema_ = {};
};

// The machine over a series of amaxes.
std::vector<MachineStep> run_machine(const MachineSpec& spec, const std::vector<float>& amaxes);

}  // namespace fp8lab::delayed
