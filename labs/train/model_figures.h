// The pictures of a training. Every title states what the data show at that moment, with its number.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/figure/figure.h"
#include "core/nn/models/mlp/tensors.h"
#include "core/nn/train_spec.h"
#include "labs/train/model_history.h"

namespace fp8lab::train {

inline constexpr double kPassGapPct = 5;  // the pass mark of the gap, drawn as a band
inline constexpr double kLostGradientPct =
    30;  // mean underflow of a dy from which "the gradient does not" agree

// How an arm is called and drawn on this screen.
struct ArmLook {
    std::string name;  // "FP8"; "FP8 B" where two arms would be called the same
    Role role = Role::truth;
    Dash dash = Dash::solid;
    float width = 2;
};
std::vector<ArmLook> arm_looks(const std::vector<Recipe>& arms);

// A control that was moved while the training ran: "Margin 2", after the last step seen before it.
struct ControlMark {
    int step = 0;
    std::string label = {};
};

// What the figures are made from.
struct Picture {
    const History& history;
    const TrainSpec& spec;
    MlpTensor tensor;                                             // whose histogram
    std::vector<std::pair<std::string, std::string>> parameters;  // into every figure
    std::vector<int> poisoned = {};                               // steps whose batch was multiplied
    std::vector<ControlMark> moved = {};                          // in the order of steps
};

// "loss" "gap" "histogram" "amax" "scale" "underflow" "lost-l1" "lost-energy", then for spiral "boundary-a" "boundary-b" ...
std::vector<Figure> figures(const Picture& picture);
Figure histogram_figure(const Picture& picture);
Figure loss_thumbnail(const Picture& picture);

// The sentence over the loss: "The two curves stay together".
std::string finding(const Picture& picture);

// Tail loss of an arm against the first arm's in percent; NaN before the first step or when one is not
// finite.
double gap_pct(const History& history, std::size_t arm);
std::string loss_text(double loss);          // three digits, zeros at the end kept: "0.0640"
std::string percent_text(double percent);    // the size, three digits: "3.90", "32.4", "1097"; "NaN"
std::string signed_percent(double percent);  // "+3.90 %"

// Which format a tensor of the arm is cast to, in a network of `layers`; null where it is not cast.
const FormatInfo* cast_format(const Recipe& recipe, const ModelPlan& plan, TensorId id);
Role tensor_role(const Recipe& recipe, const ModelPlan& plan, TensorId id);

}  // namespace fp8lab::train
