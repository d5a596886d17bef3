// The presenter's notes: what to say, ask and do at the scene, what comes next, the room's votes, a clock and whether the
// lecture is on time. A desktop has a second window for them; in a page they lie over the scene.
#pragma once

#include "app/shell/present/present.h"

namespace fp8lab {

// At the ImGui cursor of a window that fills `area`.
void draw_notes(ui::Context& context, Presentation& presentation, Rect area);

}  // namespace fp8lab
