// What happens to the tensor from step to step.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/fields.h"
#include "core/stats/tensor_stats.h"
#include "core/tensors/tensor.h"
#include "labs/delayed/model_machine.h"

namespace fp8lab::delayed {

// kind: one of scenario_choices(). `spike`, `shift` and `vanishing` multiply a fresh draw of the tensor in
// every step, whose amax is what it turns out to be. `rows`: a step per row of the tensor in tensor.file.
// The others say each step's amax: one draw, scaled to it.
struct ScenarioSpec {
    std::string kind = "trace";
    double growth = 1.5;      // growth: factor a step; vanishing: divisor a step
    double jump = 64;         // spike, shift, poison: factor; cold: the amax
    int jump_at = 20;         // the step of the spike, the shift, the Inf
    std::string series = {};  // kind "file": an amax file as `simulate --amax` takes it
    TensorSpec tensor = {.kind = "lognormal", .size = 1};
    bool operator==(const ScenarioSpec&) const = default;
};
std::vector<Choice> scenario_choices();
bool uses_growth(std::string_view kind);
bool uses_jump(std::string_view kind);
bool uses_jump_at(std::string_view kind);

// Tensors of all steps. Where they would be more than 16 Mi elements together they are thinned evenly, the
// largest element kept.
class Tensors {
  public:
    Tensors() = default;
    // Throws input_error for a file that cannot be read or holds no step.
    explicit Tensors(const ScenarioSpec& spec);
    std::size_t steps() const { return amaxes_.size(); }
    std::size_t elements() const { return per_step_; }
    const std::string& note() const { return note_; }  // what a file has that is not finite; else empty
    const std::vector<float>& amaxes() const { return amaxes_; }  // Inf where a step is poisoned
    bool fresh() const { return fresh_; }  // each step is a draw of its own, and so is its amax
    std::vector<float> at(std::size_t step) const;
    CastStats cast(std::size_t step, const FormatInfo& format, float scale) const;
    // All steps under a machine, in parallel; equal casts are made once.
    std::vector<CastStats> cast(const FormatInfo& format, const std::vector<MachineStep>& steps) const;

  private:
    std::vector<float> levels_;  // what multiplies the draw
    std::vector<float> amaxes_;
    std::vector<float> draws_;  // one for all steps, of amax 1; or one a step
    std::size_t per_step_ = 0, largest_ = 0;
    bool fresh_ = false;
    std::string note_;
};

}  // namespace fp8lab::delayed
