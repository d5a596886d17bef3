// What the stages of labs share besides plots: headings, notes, names at the ends of lines, rows, knobs. Rectangles and
// what is returned in physical px.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "labs/ui/context.h"
#include "labs/ui/plot/plot.h"

namespace fp8lab::ui {

// Over a part of the stage; of as many lines as it needs. Returns where it ends.
float heading(Context&, std::string_view words, Rect area);
// Muted words under a part: nothing where not all of their lines have room.
void note(Context&, std::string_view words, Rect area);
// Muted words, as many of their lines as have room. Returns where they end.
float paragraph(Context&, std::string_view words, Rect area);

// Moves items apart along their member y, so that each is `pitch` or more below the one before, all of them between
// `top` and `bottom`. Sorts them.
template <class Item>
void move_apart(std::vector<Item>& items, float pitch, float top, float bottom) {
    std::ranges::sort(items, {}, &Item::y);
    for (std::size_t i = 0; i < items.size(); ++i)
        items[i].y = std::max(items[i].y, i == 0 ? top : items[i - 1].y + pitch);
    for (std::size_t i = items.size(); i-- > 0;)
        items[i].y = std::min(items[i].y, i + 1 == items.size() ? bottom : items[i + 1].y - pitch);
}
// Beside the ends of lines, moved apart where they would overlap. x: their left edge. The ink is that of the value, or
// of the name where there is no value.
struct EndWords {
    float y;
    std::string value, name;
    Color ink;
};
void end_words(Context&, std::vector<EndWords> ends, float x, Rect area);
// The values of an x axis that is drawn without labels, and its name at the left end.
void axis_below(Context&, const PlotResult& plot, std::string_view name,
                std::span<const std::pair<double, std::string_view>> ticks, float left);

// The result of a panel: a large number, and at the right what it is; below it where there is no room. `name` is the
// probe, "wide.result"; what is behind its dot names the number that can be copied, if it is finite: "value.result".
struct Headline {
    std::string words, of;
    double value;
    Color ink = {Role::text};
};
void headline(Context&, std::string_view name, const Headline& result);

// A row with a hairline above: words at the left, a number at the right. Returns where it ends.
struct RowWords {
    std::string words, value;
    Color ink = {Role::text};
    bool strong = false;
};
float row(Context&, const RowWords& row, Rect area, float height);

// The ground of a row that a press chooses. Returns whether it is pressed now.
bool press_row(Context&, std::string_view name, Rect line, bool chosen);

// Two parts side by side with a line between them; where the stage is narrow, one of them behind a switch, whose choice
// is `part`.
struct Halves {
    Rect left, right;
    bool shows_left = true, shows_right = true;
};
Halves halves(Context&, std::string_view name, Rect area, const std::array<std::string, 2>& names, int& part);

// "Copy TE recipe", and where there is a `recipe` "Train with it", which opens L8 with it as arm B. `name`: before the
// names of the buttons.
void recipe_buttons(Context&, const std::string& name, const std::string& te_code, const std::string& recipe);

// A switch with its right upper corner there. `width`: logical px.
void corner_switch(Context&, std::string_view name, Point right_top, float width,
                   std::span<const std::string> labels, int& selected);

void knob(Context&, Point center, float radius = 7);  // logical px, with a rim of 2
int arrow_step();                                     // right and left key: 1, -1 or 0

}  // namespace fp8lab::ui
