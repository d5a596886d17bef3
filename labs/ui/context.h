// What a view draws with: theme, scale, fonts, and the frame's shared state. Passed by reference, owned by the shell;
// there is no other place where presentation state may live than here, in a view's members or in a PlotState.
#pragma once

#include <imgui.h>

#include <map>
#include <string>
#include <string_view>

#include "core/figure/canvas.h"
#include "core/figure/palette.h"

namespace fp8lab::ui {

// Name -> rectangle of the items of this frame, so that tests and the tour can find a control by its name.
// Recorded only while `enabled`.
struct Probes {
    bool enabled = false;
    struct Item { Rect rect; Rect clip; };  // clip: the visible part of the window it sits in
    std::map<std::string, Item, std::less<>> items;
};

struct Context {
    Theme theme = Theme::dark;
    float scale = 1.0F;                 // physical px per logical px; fonts are rebuilt at this size
    bool reduce_motion = false;
    Probes probes;
    bool wants_redraw = false;          // set by a view that must be drawn again without an event

    ImFont* font(Font font) const;      // loaded by Fonts (labs/ui/fonts.h)
    ImU32 color(Color color) const;
    ImU32 color(Role role) const { return this->color(Color{role}); }
    float px(float logical) const { return logical * scale; }
    std::map<int, ImFont*> fonts;       // face and size -> atlas entry, filled by load_fonts()
};

// Records the last item (or an explicit rectangle, physical px) under a name: "train.start".
void probe(Context& context, std::string_view name);
void probe(Context& context, std::string_view name, Rect rect);

}  // namespace fp8lab::ui
