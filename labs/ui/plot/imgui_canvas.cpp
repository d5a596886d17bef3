#include "labs/ui/plot/imgui_canvas.h"

#include <algorithm>
#include <cmath>

#include "labs/ui/widgets.h"

namespace fp8lab::ui {

namespace {

// An anti-aliased thick line has 4 vertices a point; distribution builds of ImGui have 16-bit indices, so a
// call may take at most 16,384 points. Half of that leaves the list room for the rest.
constexpr std::size_t kChunk = 8192;
constexpr std::size_t kVertexLimit = 1U << 16;
constexpr std::size_t kMostDashes =
    4096;  // a noisy line of a million samples is an area: dashes would not show

ImU32 packed(Rgba c) { return IM_COL32(c.r, c.g, c.b, c.a); }

// ImGui mitres a corner of more than 120 degrees into a spike longer than the line is wide.
bool turns_back(ImVec2 a, ImVec2 b, ImVec2 c) {
    const ImVec2 in = {b.x - a.x, b.y - a.y}, out = {c.x - b.x, c.y - b.y};
    const float dot = in.x * out.x + in.y * out.y;
    return dot < 0 && 4 * dot * dot > (in.x * in.x + in.y * in.y) * (out.x * out.x + out.y * out.y);
}

}  // namespace

// If the backend has no vertex offsets (ImGuiBackendFlags_RendererHasVtxOffset) a list ends at 65,536
// vertices; ImGui would abort there. What does not fit is then left out.
bool ImGuiCanvas::has_room(std::size_t vertices) const {
    return (list_.Flags & ImDrawListFlags_AllowVtxOffset) != 0 ||
           static_cast<std::size_t>(list_.VtxBuffer.Size) + vertices < kVertexLimit;
}

void ImGuiCanvas::stroke(std::span<const ImVec2> points, ImU32 color, float width) {
    for (std::size_t first = 0; first + 1 < points.size();) {
        std::size_t last = first + 1;
        while (last + 1 < points.size() && last - first + 1 < kChunk &&
               !turns_back(points[last - 1], points[last], points[last + 1]))
            ++last;
        const std::size_t count = last - first + 1;
        if (has_room(4 * count))
            list_.AddPolyline(&points[first], static_cast<int>(count), color, ImDrawFlags_None, width);
        first = last;  // chunks share a point
    }
}

void ImGuiCanvas::dashed(std::span<const ImVec2> points, ImU32 color, float width, float mark, float gap) {
    std::vector<ImVec2> piece = {points.front()};
    float left = mark;  // of the current mark or gap
    bool drawing = true;
    for (std::size_t i = 1; i < points.size(); ++i) {
        ImVec2 from = points[i - 1];
        const ImVec2 to = points[i];
        float length = std::hypot(to.x - from.x, to.y - from.y);
        while (length > left) {
            const float t = left / length;
            from = {from.x + t * (to.x - from.x), from.y + t * (to.y - from.y)};
            length -= left;
            piece.push_back(from);
            if (drawing) stroke(piece, color, width);
            piece.assign({from});
            drawing = !drawing;
            left = drawing ? mark : gap;
        }
        left -= length;
        if (length > 0) piece.push_back(to);
    }
    if (drawing) stroke(piece, color, width);
}

void ImGuiCanvas::line_strip(std::span<const Point> points, Color color, float width, Dash dash,
                             bool closed) {
    if (points.empty()) return;
    std::vector<ImVec2> physical;
    physical.reserve(points.size() + 1);
    for (const Point p : points) physical.emplace_back(context_.px(p.x), context_.px(p.y));
    if (closed) physical.push_back(physical.front());
    const auto [mark, gap] = dash_lengths(dash);
    float length = 0;
    for (std::size_t i = 1; mark > 0 && i < points.size(); ++i)
        length += std::hypot(points[i].x - points[i - 1].x, points[i].y - points[i - 1].y);
    const bool dashes = mark > 0 && length < static_cast<float>(kMostDashes) * (mark + gap);
    if (dashes)
        dashed(physical, context_.color(color), context_.px(width), context_.px(mark), context_.px(gap));
    else
        stroke(physical, context_.color(color), context_.px(width));
}

void ImGuiCanvas::rect(Rect r, Rgba fill) {
    const float x0 = std::round(context_.px(r.x0)), y0 = std::round(context_.px(r.y0));
    const float x1 = std::max(std::round(context_.px(r.x1)), x0 + 1),
                y1 = std::max(std::round(context_.px(r.y1)), y0 + 1);
    if (has_room(4)) list_.AddRectFilled({x0, y0}, {x1, y1}, packed(fill));
}

void ImGuiCanvas::polygon(std::span<const Point> convex, Color fill) {
    std::vector<ImVec2> physical;
    for (const Point p : convex) physical.emplace_back(context_.px(p.x), context_.px(p.y));
    if (has_room(2 * physical.size()))
        list_.AddConvexPolyFilled(physical.data(), static_cast<int>(physical.size()), context_.color(fill));
}

void ImGuiCanvas::text(Point at, std::string_view words, Color color, Font font) {
    if (!words.empty() && has_room(4 * words.size()))
        text_at(context_, {context_.px(at.x), context_.px(at.y)}, words, color, font);
}

float ImGuiCanvas::text_width(std::string_view words, Font font) {
    return ui::text_width(context_, words, font) / context_.scale;
}

void ImGuiCanvas::push_clip(Rect r) {
    list_.PushClipRect({context_.px(r.x0), context_.px(r.y0)}, {context_.px(r.x1), context_.px(r.y1)}, true);
}
void ImGuiCanvas::pop_clip() { list_.PopClipRect(); }

}  // namespace fp8lab::ui
