#include "app/shell/layout.h"

#include <algorithm>
#include <cmath>

namespace fp8lab {
namespace {

constexpr float kRail = 220, kNarrowRail = 56, kPanel = 360, kTab = 24, kStatus = 28;
constexpr float kWide = 1280, kFullRail = 1100;

}  // namespace

WindowLayout make_window_layout(float width_px, float height_px, float scale, bool has_panel,
                                bool panel_open_wide, bool panel_open_narrow) {
    const auto px = [scale](float logical) { return std::round(logical * scale); };
    WindowLayout layout;
    layout.narrow = width_px < px(kWide);
    layout.rail_full = width_px >= px(kFullRail);
    layout.panel_open = has_panel && (layout.narrow ? panel_open_narrow : panel_open_wide);
    const float rail = px(layout.rail_full ? kRail : kNarrowRail);
    const float panel = has_panel ? px(layout.panel_open ? kPanel : kTab) : 0;
    const float bottom = std::max(1.0F, height_px - px(kStatus));
    const float panel_left = std::max(rail, width_px - panel);
    layout.rail = {0, 0, rail, bottom};
    layout.stage = {rail, 0, panel_left, bottom};
    layout.panel = {panel_left, 0, width_px, bottom};
    layout.status = {0, bottom, width_px, height_px};
    return layout;
}

}  // namespace fp8lab
