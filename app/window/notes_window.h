// The presenter's window: what to say, ask and do at the scene, its notes, what comes next, the room's votes, a clock and
// whether the lecture is on time. Keys pressed in it go to the lecture.
#pragma once

#include <memory>

#include "app/shell/present/present.h"
#include "app/window/gl_window.h"
#include "labs/ui/context.h"

namespace fp8lab {

class NotesWindow {
  public:
    NotesWindow(GlWindow& first, const ui::Context& desk);

    void draw(Presentation& presentation);  // leaves the first window in use
    bool closed() const;

  private:
    GlWindow& first_;
    GlWindow window_;
    ui::Context context_;
};

// What is in it, at the ImGui cursor of a window that fills `area`; for tests without a display.
void draw_notes(ui::Context& context, Presentation& presentation, Rect area);

}  // namespace fp8lab
