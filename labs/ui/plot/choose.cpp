#include "labs/ui/plot/choose.h"

namespace fp8lab::ui {

std::optional<PlotResult::Hit> chosen_mark(Context& context, const PlotResult& plot,
                                           const std::function<bool(const PlotResult::Hit&)>& stands) {
    constexpr float kRing = 9;
    if (context.focus.reach != Focus::Reach::live || !plot.nearest || !stands(*plot.nearest)) return {};
    const Point at = plot.to_px(plot.nearest->x, plot.nearest->y);
    ImGui::GetWindowDrawList()->AddCircle({at.x, at.y}, context.px(kRing), context.color(Role::text), 0,
                                          context.px(2));
    ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    return plot.clicked ? plot.nearest : std::nullopt;
}

}  // namespace fp8lab::ui
