// The pictures of a training. Every title states what the data show at that moment, with its number.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/figure/figure.h"
#include "core/nn/models/mlp/tensors.h"
#include "core/nn/train_spec.h"
#include "labs/live/curves.h"
#include "labs/live/histogram.h"
#include "labs/live/history.h"
#include "labs/live/looks.h"

namespace fp8lab::train {

using namespace live;  // what labs that train share

inline constexpr double kPassGapPct = 5;  // the pass mark of the gap, drawn as a band
inline constexpr double kLostGradientPct =
    30;  // mean underflow of a dy from which "the gradient does not" agree

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

// The sentence over the loss: "The two curves stay together".
std::string finding(const Picture& picture);
std::vector<Figure> curves(const Picture& picture);  // "loss" and "gap" alone

}  // namespace fp8lab::train
