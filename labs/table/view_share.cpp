#include "labs/table/view_share.h"

#include <fmt/format.h>

#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab::table {

ShareButton share_line(ui::Context& c, const std::string& name, const std::string& words, double share,
                       bool stopped) {
    const Rect line = ui::next_area(c, 32);
    ui::text_mid(c, {line.x0, (line.y0 + line.y1) / 2},
                 fmt::format("{}{}, {:.0f} %", words, stopped ? " stopped" : "", 100 * share), {Role::muted},
                 kSans13);
    constexpr float kButton = 76;
    ImGui::SetCursorScreenPos({line.x1 - c.px(kButton), line.y0});
    const bool pressed = ui::button(c, name, stopped ? "Go on" : "Stop", {.width = kButton});
    return !pressed ? ShareButton::none : stopped ? ShareButton::resume : ShareButton::stop;
}

}  // namespace fp8lab::table
