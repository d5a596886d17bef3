// A series of a training in a cell of a table.
#pragma once

#include "labs/live/history.h"
#include "labs/ui/context.h"

namespace fp8lab::live {

// On a logarithmic axis of its own, from its least to its greatest value; the run's steps from left to right. Nothing where no
// value is above 0.
void draw_strip(ui::Context& context, Rect area, const Envelope& envelope);

}  // namespace fp8lab::live
