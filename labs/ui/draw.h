// Shapes that the controls share. Rectangles in physical px.
#pragma once

#include <imgui.h>

#include "labs/ui/context.h"

namespace fp8lab::ui {

float hairline(const Context&);  // 1 logical px, whole physical px
Rect inset(Rect rect, float by);
void fill_rect(const Context&, Rect rect, Color fill, float radius = 0);  // radius: logical px
void stroke_rect(const Context&, Rect rect, Color line, float radius = 0, float width = 1);
void hline(const Context&, float x0, float x1, float y, Color color);  // hairline
void focus_ring(const Context&, Rect rect, float radius);              // 2 px text, 2 px gap
// Scroll bars in the margins of the current window where it scrolls; the width of the content does not
// change.
void scroll_thumbs(const Context&);
enum class Direction { left, right, up, down };
void chevron(const Context&, Point center, Direction direction, Color color);
void cross(const Context&, Point center, Color color);
void alert(const Context&, Point center, Color color);  // "!" in a circle of radius 7
void disc_tick(const Context&, Point center, float radius, Color disc, Color tick);

}  // namespace fp8lab::ui
