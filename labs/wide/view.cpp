#include "labs/wide/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab::wide {
using ui::Context;

void WideView::stage(Context& c, Rect area) {
    if (lab_.shows("swiglu")) return draw_swiglu(c, area);
    if (lab_.shows("optimiser")) return draw_optimiser(c, area);
    draw_attention(c, area);
}

void WideView::go_to(int step) { set(fmt::format("step={}", std::clamp(step, 0, kSteps - 1))); }

bool WideView::key(Context&, ui::Key key) {
    if (!lab_.shows("swiglu") || (key != ui::Key::comma && key != ui::Key::period)) return false;
    go_to(lab_->params.step + (key == ui::Key::period ? 1 : -1));
    return true;
}

std::span<const ViewKey> WideView::keys() const {
    static constexpr std::array kKeys = {
        ViewKey{".", "one step forward", ui::Key::period, ui::Key::period},
        ViewKey{",", "one step back", ui::Key::comma, ui::Key::comma},
    };
    if (!lab_.shows("swiglu")) return {};  // the others have no steps
    return kKeys;
}

std::vector<std::pair<std::string, std::string>> WideView::status() const {
    const Params& p = lab_->params;
    const std::string seed = std::to_string(p.seed);
    if (lab_.shows("swiglu"))
        return {{"seed", seed},
                {"batch", fmt::format("{} tokens, {} channels", kTokens, kChannels)},
                {"history", std::to_string(p.swiglu.history)}};
    if (lab_.shows("optimiser"))
        return {{"seed", seed},
                {"gradient", p.optimiser.signal == "noise" ? "N(0, 1)" : "g = 0 from step 1"},
                {"elements", group_thousands(kElements)}};
    return {{"seed", seed},
            {"scores", fmt::format("{} rows, sigma {}", kRows, screen_number(p.sigma, 3))},
            {"keys", group_thousands(std::stoi(p.keys))}};
}

std::unique_ptr<LabView> make_view(Lab& lab) {
    return std::make_unique<WideView>(static_cast<WideLab&>(lab));
}

}  // namespace fp8lab::wide
