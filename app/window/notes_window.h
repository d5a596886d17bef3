// The presenter's window (app/shell/present/notes.h). Keys pressed in it go to the lecture.
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

}  // namespace fp8lab
