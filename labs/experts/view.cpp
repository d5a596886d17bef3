#include "labs/experts/view.h"

#include <fmt/format.h>

#include "labs/ui/widgets.h"

namespace fp8lab::experts {

Figure without_title(Figure figure) {
    figure.title.clear();
    return figure;
}

void MixtureView::stage(ui::Context& c, Rect area) {
    if (!lab_->problem.empty()) {
        ImGui::SetCursorScreenPos({area.x0, area.y0});
        ImGui::BeginChild("experts.problem", {area.width(), area.height()}, false,
                          ImGuiWindowFlags_NoScrollbar);
        ui::warning(c, lab_->problem + ".", kSans15);
        ImGui::EndChild();
        return;
    }
    if (lab_.shows("routing")) return draw_routing(c, area);
    if (lab_.shows("groups")) return draw_groups(c, area);
    if (lab_.shows("hop")) return draw_hop(c, area);
    draw_training(c, area);
}

std::vector<std::pair<std::string, std::string>> MixtureView::status() const {
    if (lab_.shows("groups")) return {{"recorded", lab_->device().empty() ? "–" : lab_->device()}};
    if (lab_.shows("training"))
        return {{"model", fmt::format("moe 64, 2 blocks, {} experts, seed {}", lab_->params.experts,
                                      lab_->params.seed)},
                {"data", "text, 8 × 64 tokens per step"}};
    return {{"model", fmt::format("moe 64, 2 blocks, 8 experts, seed {}", lab_->params.seed)},
            {"data", "4,096 held-out tokens"}};
}

std::unique_ptr<LabView> make_view(Lab& lab) {
    return std::make_unique<MixtureView>(static_cast<MixtureLab&>(lab));
}

}  // namespace fp8lab::experts
