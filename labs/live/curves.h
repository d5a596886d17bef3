// The curves of loss and gap of a training, and the sentences over them: what the figures of labs that train share.
#pragma once

#include <string>
#include <vector>

#include "core/figure/figure.h"
#include "labs/live/history.h"
#include "labs/live/looks.h"

namespace fp8lab::live {

AxisSpec step_axis(int steps);
// A dotted line at the newest of the steps, while there are steps to come.
void add_now(Figure& figure, int done, int steps);

// How an arm's values of each batch are drawn, and their mean through the noise.
Style batch_style(const ArmLook& look, float opacity);
Style mean_style(const ArmLook& look, std::string end_label);
// Of each arm both for its losses, the reference on top.
void add_losses(Figure& figure, const History& history, const std::vector<ArmLook>& looks, float opacity);
// At least this factor on the axis of y, or the noise of the first steps would fill the plot.
void widen(Figure& figure, double factor);
// The means of the losses alone.
Figure loss_thumbnail(const History& history, const std::vector<ArmLook>& looks);

// Figure "gap" without its curves: `range` of y, made wider where a gap needs it, without the noise of the first steps; in
// it the band that passes, with its words where they have room.
Figure gap_figure(std::string title, int steps, const History& history, Range range, Range band,
                  const std::string& words);
// "FP8 is 3.49 % above BF16"
std::string gap_sentence(const std::vector<ArmLook>& looks, std::size_t arm, double gap_pct);

// "FP8 stopped at step 20: dy1 is not finite", of the first arm that did; what to do before the first step; else empty.
std::string state_sentence(const History& history, const std::vector<ArmLook>& looks);

}  // namespace fp8lab::live
