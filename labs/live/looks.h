// How arms and tensors of a training are called and drawn, and how its losses are written: the same in every lab that
// trains.
#pragma once

#include <string>
#include <vector>

#include "core/figure/figure.h"
#include "core/nn/model_plan.h"
#include "labs/live/history.h"

namespace fp8lab::live {

// How an arm is called and drawn on this screen.
struct ArmLook {
    std::string name;  // "FP8"; "FP8 B" where two arms would be called the same
    Role role = Role::truth;
    Dash dash = Dash::solid;
    float width = 2;
};
std::vector<ArmLook> arm_looks(const std::vector<Recipe>& arms);

// Tail loss of an arm against the first arm's in percent; NaN before the first step or when one is not
// finite.
double gap_pct(const History& history, std::size_t arm);
std::string loss_text(double loss);          // three digits, zeros at the end kept: "0.0640"
std::string percent_text(double percent);    // the size, three digits: "3.90", "32.4", "1097"; "NaN"
std::string signed_percent(double percent);  // "+3.90 %"

// Which format a tensor of the arm is cast to, in a network of `layers`; null where it is not cast.
const FormatInfo* cast_format(const Recipe& recipe, const ModelPlan& plan, TensorId id);
Role tensor_role(const Recipe& recipe, const ModelPlan& plan, TensorId id);

}  // namespace fp8lab::live
