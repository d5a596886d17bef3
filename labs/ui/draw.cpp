#include "labs/ui/draw.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace fp8lab::ui {
namespace {

ImDrawList& list() { return *ImGui::GetWindowDrawList(); }

void stroke(const Context& context, std::span<const ImVec2> points, Color color, float width) {
    list().AddPolyline(points.data(), static_cast<int>(points.size()), context.color(color), ImDrawFlags_None,
                       context.px(width));
}

}  // namespace

float hairline(const Context& context) { return std::max(1.0F, std::round(context.scale)); }

Rect inset(Rect rect, float by) { return {rect.x0 + by, rect.y0 + by, rect.x1 - by, rect.y1 - by}; }

void fill_rect(const Context& context, Rect rect, Color fill, float radius) {
    list().AddRectFilled({rect.x0, rect.y0}, {rect.x1, rect.y1}, context.color(fill), context.px(radius));
}

void stroke_rect(const Context& context, Rect rect, Color line, float radius, float width) {
    // ImGui strokes around the pixel centres of the outermost pixels: thicker lines move inwards to stay
    // inside.
    const float thickness = width * hairline(context);
    const float in = (thickness - 1) / 2;
    list().AddRect({rect.x0 + in, rect.y0 + in}, {rect.x1 - in, rect.y1 - in}, context.color(line),
                   context.px(radius), ImDrawFlags_None, thickness);
}

void hline(const Context& context, float x0, float x1, float y, Color color) {
    const float top = std::round(y);
    list().AddRectFilled({x0, top}, {x1, top + hairline(context)}, context.color(color));
}

void focus_ring(const Context& context, Rect rect, float radius) {
    stroke_rect(context, inset(rect, -context.px(4)), {Role::text}, radius + 4, 2);
}

void scroll_thumbs(const Context& context) {
    const ImVec2 at = ImGui::GetWindowPos();
    const ImVec2 size = ImGui::GetWindowSize();
    const float thick = context.px(4), least = context.px(2);        // less is a gap below the last line
    constexpr Color kThumb{Role::axis, Tone::line, 0.8F};            // 3:1 on every surface
    ImGui::PushClipRect(at, {at.x + size.x, at.y + size.y}, false);  // thumbs stand in the padding
    if (const float range = ImGui::GetScrollMaxY(); range > least) {
        const float length = size.y * size.y / (size.y + range);
        const float y = at.y + (size.y - length) * ImGui::GetScrollY() / range;
        const float x = at.x + size.x - 2 * thick;
        fill_rect(context, {x, y, x + thick, y + length}, kThumb, 2);
    }
    if (const float range = ImGui::GetScrollMaxX(); range > least) {
        const float length = size.x * size.x / (size.x + range);
        const float x = at.x + (size.x - length) * ImGui::GetScrollX() / range;
        const float y = at.y + size.y - 2 * thick;
        fill_rect(context, {x, y, x + length, y + thick}, kThumb, 2);
    }
    ImGui::PopClipRect();
}

void chevron(const Context& context, Point center, Direction direction, Color color) {
    const float reach = context.px(4);
    const float half = reach / 2;
    std::array<ImVec2, 3> points;
    switch (direction) {
        case Direction::left:
            points = {{{half, -reach}, {-half, 0}, {half, reach}}};
            break;
        case Direction::right:
            points = {{{-half, -reach}, {half, 0}, {-half, reach}}};
            break;
        case Direction::up:
            points = {{{-reach, half}, {0, -half}, {reach, half}}};
            break;
        case Direction::down:
            points = {{{-reach, -half}, {0, half}, {reach, -half}}};
            break;
    }
    for (auto& p : points) p = {p.x + center.x, p.y + center.y};
    stroke(context, points, color, 1.5F);
}

void cross(const Context& context, Point center, Color color) {
    const float reach = context.px(4);
    const std::array<ImVec2, 2> down = {
        {{center.x - reach, center.y - reach}, {center.x + reach, center.y + reach}}};
    const std::array<ImVec2, 2> up = {
        {{center.x - reach, center.y + reach}, {center.x + reach, center.y - reach}}};
    stroke(context, down, color, 1.5F);
    stroke(context, up, color, 1.5F);
}

void alert(const Context& context, Point center, Color color) {
    const ImU32 ink = context.color(color);
    const float thick = context.px(1.5F);
    list().AddCircle({center.x, center.y}, context.px(6.25F), ink, 0, thick);
    list().AddRectFilled({center.x - thick / 2, center.y - context.px(3.5F)},
                         {center.x + thick / 2, center.y + context.px(1)}, ink);
    list().AddRectFilled({center.x - thick / 2, center.y + context.px(2)},
                         {center.x + thick / 2, center.y + context.px(3.5F)}, ink);
}

void disc_tick(const Context& context, Point center, float radius, Color disc, Color tick) {
    const float r = context.px(radius);
    list().AddCircleFilled({center.x, center.y}, r, context.color(disc));
    const std::array<ImVec2, 3> points = {{{center.x - 0.42F * r, center.y + 0.04F * r},
                                           {center.x - 0.10F * r, center.y + 0.36F * r},
                                           {center.x + 0.45F * r, center.y - 0.30F * r}}};
    stroke(context, points, tick, 1.75F);
}

}  // namespace fp8lab::ui
