// The controls of look.md 5. Each draws at the ImGui cursor with the full width available, advances
// the cursor, records a probe under `name`, is reachable by keyboard (Tab, arrows, Enter/Space) with the
// visible focus ring, and returns true when the value changed in this frame.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/fields.h"
#include "core/base/provenance.h"
#include "labs/ui/context.h"

namespace fp8lab::ui {

// The invisible item of every control, for controls of a view (bit cells, handles): mouse, keyboard focus
// with its ring, probe. `area` in physical px; the ImGui cursor stays where it was. radius: of the ring,
// logical px.
struct Press {
    bool clicked = false;  // by mouse, Enter or Space
    bool held = false;     // mouse button down on it: a drag
    bool hovered = false;
    bool focused = false;  // has the ring: arrow keys go to it
};
Press press(Context&, std::string_view name, Rect area, float radius = 6);

// The rectangle of the next control at the ImGui cursor: full width left in the window, `height` logical px.
Rect next_area(Context&, float height);
// Makes `area` the last item: the cursor moves below it (8 px gap); tooltip() and SameLine() refer to it.
void advance(Rect area);

// Text in a face and size of look.md 4; "^" raises the exponent that follows: up to a space or a sign that ends
// it, or what is in parentheses. Inline variants for tables.
void text(Context&, std::string_view text, Role role = Role::text, Font font = {Face::sans, 15});
// text_at: the baseline is 0.97 of the size below the top, in every face. text_mid: capitals centred on the
// point's y.
void text_at(Context&, Point top_left_px, std::string_view text, Color color, Font font,
             Anchor anchor = Anchor::left);
void text_mid(Context&, Point middle_px, std::string_view text, Color color, Font font,
              Anchor anchor = Anchor::left);
float text_width(const Context&, std::string_view text, Font font);
// The end of the word that begins at `from`: the next space or line end, but not that before a %.
std::size_t word_end(std::string_view text, std::size_t from = 0);
float line_height(float size);  // logical: 20 at 13, 22 at 15
// Broken at line ends and spaces; a word that is wider than a line after an underscore, or where the line ends.
std::vector<std::string_view> wrap_lines(const Context&, std::string_view text, Font font, float width_px);
void wrapped(Context&, std::string_view text, Role role = Role::muted, Font font = {Face::sans, 13});
void warning(Context&, std::string_view text,
             Font font = {Face::sans, 13});  // wrapped, after a "!" in a circle

// width: logical px; 0: as wide as its words, -1: all that is left. key: hint in mono, "Space".
struct ButtonOptions {
    std::string_view key = {};
    bool primary = false;
    bool disabled = false;
    std::string_view why_disabled = {};
    float width = 0;
};
bool button(Context&, std::string_view name, std::string_view label, ButtonOptions options = {});

// One of n; 32 high, in rows where they do not fit. `selected`: an index; only the first `enabled` can be chosen.
// Its height in px, where it is `width_px` wide.
float segmented_height(const Context&, std::span<const std::string> labels, float width_px);
bool segmented(Context&, std::string_view name, std::span<const std::string> labels, int& selected,
               std::size_t enabled = static_cast<std::size_t>(-1));
// The index of a choice by its label, for lists whose choices come and go; 0 where it is not there.
int index_of_choice(std::span<const std::string> labels, std::string_view chosen);
// Closed: 32 high, Up and Down choose, Enter opens the list. Probe of a row: "<name>.<index>".
bool dropdown(Context&, std::string_view name, std::span<const std::string> labels, int& selected);
// The same in a cell of a table: its words in mono and a chevron, without a border. The ImGui cursor stays where it
// was.
bool cell_menu(Context&, std::string_view name, Rect area, std::string_view words, Color ink,
               std::span<const std::string> labels, int& selected);

// format: fmt's, with the value as {0} and 2 to its power as {1}: "2^{0:.0f} = \u00d7{1:g}"; empty: 4
// significant digits. step: what a value snaps to and an arrow key adds; 0: continuous (arrows: 1 % of the
// track). A double click on the value, or Enter on it, edits it as text. 56 high, 72 with ticks.
struct SliderOptions {
    bool logarithmic = false;
    double step = 0;
    std::string_view format = {};
    std::span<const double> ticks = {};
    std::optional<double> default_value = {};
};
bool slider(Context&, std::string_view name, std::string_view label, std::string_view te_name, double& value,
            double min, double max, SliderOptions options = {});

// A number in a field: the words `shown`, or while it is edited its text, which a click or Enter begins. Returns the number
// that was typed, once: by Enter, Tab or leaving the field, never by Escape. The ImGui cursor stays where it was.
std::optional<double> value_field(Context&, const std::string& name, Rect area, double value,
                                  std::string_view shown);

// A text field, drawn as wrapped text; a click or Enter edits it as one line. Its height is that of the
// wrapped text and at least `rows` lines. With the keyboard the whole line is selected, with a click the
// caret is at its end. Returns true when the text was changed: by Enter, Tab or leaving the field, never by
// Escape. Tab moves to the next control, and edits it at once where it is a text field too.
bool text_input(Context&, std::string_view name, std::string& value, std::string_view placeholder = {},
                Font font = {Face::sans, 13}, std::size_t rows = 1);
// For a field that is edited in place of its control: keeps it in the order of Tab. True when Tab leaves it
// now.
bool tab_leaves(Context&, std::string_view name);
// Call it after the edited text field, which asks for the focus in each frame until it has it.
void got_focus(Context&);

// The default widget of a field: slider for numbers, segmented switch (<= 4 short choices) or dropdown,
// checkbox. `default_value` is drawn as the tick; help, unit, range and Transformer Engine's name are the
// tooltip.
bool edit(Context&, const Field& field, const Field* default_field = nullptr);

// Whether a scene withholds the field: true where it is hidden, or locked, in which case its value is drawn
// here. For views with a control of their own for it; edit() does this by itself.
bool withheld(Context&, const Field& field);

// A line that opens the second tier of controls, or anything else that is below it.
void disclosure(Context&, std::string_view name, std::string_view label, bool& open);

void divider(Context&);
// Tabs of the panel: 15, the selected 600 with a 2 px bar on the hairline at the bottom of `area`. Probes
// "<name>.<label>".
bool tabs(Context&, std::string_view name, std::span<const std::string> labels, int& selected, Rect area);
void badge(Context&, Provenance provenance);
void badge_glyph(Context&, Provenance provenance, Point center);  // 8 px, where there is no room for words
std::string_view badge_words(Provenance provenance);              // "CPU EMULATED"
// For the last item, after 400 ms: beside the item, where it covers neither the item nor the controls below, and no
// heading of the stage or of a table.
void tooltip(Context&, std::string_view title, std::string_view body);
// The head of a column, as text_mid(); `term` is the id of the glossary entry that is its tooltip, and that a
// click opens. Not in the order of Tab. Returns the left edge of the words.
float head(Context&, Point middle_px, std::string_view words, std::string_view term,
           Anchor anchor = Anchor::right);

// Makes a number that is drawn in `area` copyable: a click or Enter opens a menu (rounded, exact, hex, C,
// NumPy); Ctrl+C copies the exact value while it has the ring. Probe of a row of the menu: "<name>.<index>".
void copyable(Context&, std::string_view name, Rect area, double value);

// A table as in look.md 5: hairline above each row, numbers right-aligned in mono. columns_px: widths,
// physical px, side by side from the cursor's x; row 32 high.
struct Cell {
    std::string text;
    Role role = Role::text;
    Tone tone = Tone::ink;
    bool mono = true;
    bool strong = false;
    Anchor anchor = Anchor::right;
    std::optional<double> value = {};  // makes it copyable() as "value.<text of the first cell>.<column>"
};
void table_row(Context&, std::span<const Cell> cells, std::span<const float> columns_px);
void table_end(Context&, std::span<const float> columns_px);  // the last hairline and a gap of 12

}  // namespace fp8lab::ui
