// What a view needs for drawing: theme, scale, fonts, and shared state of the frame. The shell owns it and
// passes it by reference. State of the presentation is only here, in members of views and in PlotState.
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
#include "core/lesson/glossary.h"
#include "labs/ui/input.h"

namespace fp8lab::ui {

// Name -> rectangle of the items of this frame, so that tests and the tour can find a control by its name, and every
// text with its place. Recorded only while `enabled`.
struct Probes {
    bool enabled = false;
    struct Item {
        Rect rect;
        Rect clip;                    // the visible part of the window it sits in
        std::optional<Extents> axes;  // plots: the ranges on show
        std::string words;            // its text, for tests
        bool live = true;             // it can be pressed: no sheet covers it, and help mode is off
    };
    std::map<std::string, Item, std::less<>> items;
    // A text of this frame as it was asked for, also where its clip rectangle leaves nothing of it. Words that ImGui
    // draws itself, those of a field that is edited, are in the draw lists only.
    struct Text {
        std::string words;
        Rect rect;       // from the top of its line to the bottom, physical px
        float size = 0;  // of its font, physical px
        Rect clip;
        const ImDrawList* list = nullptr;  // valid until the next frame
        int first = 0, last = 0;           // its vertices there, [first, last)
    };
    std::vector<Text> texts;
};

// Keyboard focus. Tab and Shift+Tab move through the controls in the order in which they were drawn; the ring
// is drawn only while the keyboard is used. ImGui's own navigation is off, because sliders and figures need
// the arrow keys.
struct Focus {
    ImGuiID id = 0;              // the focused control; 0: none
    bool visible = false;        // the ring is drawn, and Enter, Space and arrows belong to the control
    bool moved = false;          // in this frame: the control scrolls into view
    ImGuiID modal = 0;           // an open list: the only control that takes keys
    std::vector<ImGuiID> order;  // the controls of this frame
    // What the controls that are drawn now accept. found (help mode): Tab and pointing, but no press and no
    // change. covered: nothing, because a sheet is over them.
    enum class Reach { live, found, covered } reach = Reach::live;
    std::string wanted;  // this control gets the ring when it is drawn next
    int leave = 0;       // Tab left a field that was edited: 1 to the next control, -1 to the one before
    bool into = false;   // in this frame Tab left an edited field: a field that has the ring now is edited
    std::string name;    // of the control with the ring, while it is visible
};

struct Context {
    Theme theme = Theme::dark;
    float scale = 1.0F;  // physical px per logical px; fonts are rebuilt at this size
    Probes probes;
    bool wants_redraw = false;  // set by a view that must be drawn again without an event
    Focus focus;
    // Figure id -> series that the shell draws over it, such as a predicted curve. Set in each frame.
    std::map<std::string, std::vector<Series>, std::less<>> overlays;
    const Glossary* glossary = nullptr;  // for the heads of tables; null: none. Set by the shell.
    std::string wanted_term;             // a head was clicked: the shell opens it in the glossary
    struct WantedLab {
        std::string lab = {};                  // id; empty: none
        std::vector<std::string> fields = {};  // "field=value", on top of its settings
    } wanted_lab;                              // a view leads to another lab: the shell opens it
    struct Notice {
        std::string title = {}, line = {};
    } notice;  // a view tells something: the shell's toast, the only one
    // Fields (FieldInfo::name) that a scene locks or hides. Set by the shell.
    std::vector<std::string> locked, hidden;
    // The parts of the stage as they were drawn in this frame: figures by their ids, and others (ui::region()).
    std::map<std::string, Rect, std::less<>> regions;
    struct Typing {
        std::string name;
        std::string text;
        bool wants_focus = false;   // until ImGui gives it; a closing sheet can delay that
        bool select = false;        // selects the whole text at the start; else the caret is at its end
        bool caret_placed = false;  // at the end, once
    } typing;                       // the value field being edited
    // True where a text field asked ImGui for the keyboard in this frame and has not got it: typed keys wait for it.
    bool opens_text = false;
    struct Hover {
        Rect rect;
        double since = 0;
    } hover;  // the item under the mouse, for tooltips

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

// Names a part of the stage, which a prediction can cover. Rectangles of one name are one part.
void region(Context& context, std::string_view name, Rect rect);

// Records the last item (or an explicit rectangle, physical px) under a name: "train.start".
void probe(Context& context, std::string_view name);
void probe(Context& context, std::string_view name, Rect rect, std::optional<Extents> axes = {},
           std::string_view words = {});

}  // namespace fp8lab::ui
