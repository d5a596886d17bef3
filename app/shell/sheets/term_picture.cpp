#include "app/shell/sheets/term_picture.h"

#include <imgui.h>

#include "labs/course/term_figures.h"
#include "labs/ui/plot/plot.h"
#include "labs/ui/widgets.h"

namespace fp8lab {

void TermPictures::draw(ui::Context& context, std::string_view name, std::string_view term, float margin) {
    constexpr float kHeight = 220;
    const auto [figure, is_new] = figures_.try_emplace(std::string(term));
    if (is_new) figure->second = term_figure(term);
    if (!figure->second) return;
    ImGui::Dummy({1, context.px(4)});
    const Rect area = ui::next_area(context, kHeight);
    ui::PlotState still;
    ui::plot(context, std::string(name), *figure->second, still,
             {area.x0, area.y0, area.x1 - context.px(margin), area.y1},
             {.interactive = false, .crosshair = false});
    ui::advance(area);
}

}  // namespace fp8lab
