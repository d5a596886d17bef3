// The rectangles of rail, stage, panel and status line: look.md 4 as arithmetic.
#pragma once

#include "core/figure/canvas.h"

namespace fp8lab {

struct WindowLayout {
    bool narrow = false;    // below 1280: the panel is closed unless it is opened, and the stage gives way
    bool rail_full = true;  // below 1100: numbers only
    bool panel_open = false;
    Rect rail, stage, panel, status;  // physical px; panel: 360 wide, or its 24 px tab, or empty on home
};

// `panel_open`: the reader's wish for a window of this width class.
WindowLayout make_window_layout(float width_px, float height_px, float scale, bool has_panel,
                                bool panel_open_wide, bool panel_open_narrow);

}  // namespace fp8lab
