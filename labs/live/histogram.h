// The histogram of the watched tensor, before and after the cast, over the format's window.
#pragma once

#include <string_view>

#include "core/figure/figure.h"
#include "core/nn/model.h"
#include "labs/live/history.h"

namespace fp8lab::live {

// Adds both histograms of the view, the window of its format, and what became 0; sets the range of x. `named`: with the
// format's name.
void add_view(Figure& figure, const TensorView& view, Role role, bool named);

// Figure "histogram", of the second arm where there is one. `shown`: what is to be watched, before a snapshot has it;
// `none`: what the figure says then.
Figure histogram_figure(const History& history, const TrainSpec& spec, TensorId shown,
                        std::string_view none = "watched from the next step on");

}  // namespace fp8lab::live
