// What a view draws with: theme, scale, fonts, and the frame's shared state. Passed by reference, owned by
// the shell; there is no other place where presentation state may live than here, in a view's members or in a
// PlotState.
#pragma once

#include <imgui.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/figure/canvas.h"
#include "core/figure/figure.h"
#include "core/figure/palette.h"
#include "labs/ui/input.h"

namespace fp8lab::ui {

// Name -> rectangle of the items of this frame, so that tests and the tour can find a control by its name.
// Recorded only while `enabled`.
struct Probes {
    bool enabled = false;
    struct Item {
        Rect rect;
        Rect clip;                    // the visible part of the window it sits in
        std::optional<Extents> axes;  // plots: the ranges on show
        std::string words;            // what it says, where a test reads it
        bool live = true;             // it takes a press: no sheet lies over it, and help is not asked for
    };
    std::map<std::string, Item, std::less<>> items;
};

// Keyboard focus. Tab and Shift+Tab walk the controls in the order in which they were drawn; the ring shows
// only while the keyboard is in use. ImGui's own navigation is off: it would take the arrow keys that sliders
// and figures need.
struct Focus {
    ImGuiID id = 0;              // the focused control; 0: none
    bool visible = false;        // the ring is drawn, and Enter, Space and arrows belong to the control
    bool moved = false;          // in this frame: the control scrolls into view
    ImGuiID modal = 0;           // an open list: the only control that takes keys
    std::vector<ImGuiID> order;  // the controls of this frame
    // What the controls that are drawn now may do. found: be walked with Tab and pointed at, but neither
    // pressed nor moved (help). covered: nothing, a sheet lies over them.
    enum class Reach { live, found, covered } reach = Reach::live;
    std::string wanted;  // this control gets the ring when it is drawn next
    int leave = 0;       // Tab left a field that was edited: 1 to the next control, -1 to the one before
    bool into =
        false;         // in this frame the ring came out of a field by Tab: a field that has it now is edited
    std::string name;  // of the control with the ring, while it is visible
};

struct Context {
    Theme theme = Theme::dark;
    float scale = 1.0F;  // physical px per logical px; fonts are rebuilt at this size
    Probes probes;
    bool wants_redraw = false;  // set by a view that must be drawn again without an event
    Focus focus;
    // Figure id -> series laid over it, by whoever draws the window and not by the lab: a predicted curve.
    // Set anew each frame.
    std::map<std::string, std::vector<Series>, std::less<>> overlays;
    // Fields (FieldInfo::name) that a scene holds fast, or keeps out of sight. Set by whoever draws the
    // window.
    std::vector<std::string> locked, hidden;
    struct Typing {
        std::string name;
        std::string text;
        bool wants_focus = false;  // until ImGui gives it, which a sheet that closes can delay
        bool select =
            false;  // all of it when it opens, so that typing replaces it; else the caret is at its end
        bool caret_placed = false;  // at the end, once
    } typing;                       // the value field being edited
    struct Hover {
        Rect rect;
        double since = 0;
    } hover;  // what the mouse rests on, for tooltips

    ImFont* font(Font font) const;  // loaded by Fonts (labs/ui/fonts.h)
    ImU32 color(Color color) const;
    ImU32 color(Role role) const { return this->color(Color{role}); }
    float px(float logical) const { return logical * scale; }
    std::map<int, ImFont*> fonts;  // face and size -> atlas entry, filled by load_fonts()
};

// Once a frame, after ImGui::NewFrame(): clears the probes, moves the focus, sets ImGui's own colours and
// metrics.
void begin_frame(Context& context);

// True in the frame in which a key of the focused control was pressed; false while text is typed.
bool key_pressed(Key key);

// Records the last item (or an explicit rectangle, physical px) under a name: "train.start".
void probe(Context& context, std::string_view name);
void probe(Context& context, std::string_view name, Rect rect, std::optional<Extents> axes = {},
           std::string_view words = {});

}  // namespace fp8lab::ui
