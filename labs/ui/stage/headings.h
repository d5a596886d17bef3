// Where the headings of the window are, so that no tooltip lies on them.
#pragma once

#include <span>

#include "core/figure/canvas.h"

namespace fp8lab::ui {

void mark_heading(Rect area);             // physical px; called in each frame by what draws one
std::span<const Rect> marked_headings();  // of the frame before: the stage is drawn after the panel

}  // namespace fp8lab::ui
