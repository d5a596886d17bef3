// Paints a figure into the current window's draw list, at the context's scale.
#pragma once

#include "core/figure/canvas.h"
#include "labs/ui/context.h"

namespace fp8lab::ui {

class ImGuiCanvas final : public Canvas {
  public:
    explicit ImGuiCanvas(Context& context) : context_(context), list_(*ImGui::GetWindowDrawList()) {}
    void line_strip(std::span<const Point> points, Color color, float width, Dash dash, bool closed) override;
    void rect(Rect rect, Rgba fill) override;
    void polygon(std::span<const Point> convex, Color fill) override;
    void text(Point top_left, std::string_view text, Color color, Font font) override;
    float text_width(std::string_view text, Font font) override;
    void push_clip(Rect rect) override;
    void pop_clip() override;
    Theme theme() const override { return context_.theme; }
    using Canvas::rect;

  private:
    bool has_room(std::size_t vertices) const;
    void stroke(std::span<const ImVec2> points, ImU32 color, float width);
    void dashed(std::span<const ImVec2> points, ImU32 color, float width, float mark, float gap);

    Context& context_;
    ImDrawList& list_;
};

}  // namespace fp8lab::ui
