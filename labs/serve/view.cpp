#include "labs/serve/view.h"

#include <array>

#include "labs/ui/widgets.h"

namespace fp8lab::serve {

void ServeView::stage(ui::Context& c, Rect area) {
    if (!lab_->problem.empty()) {
        ImGui::SetCursorScreenPos({area.x0, area.y0});
        ImGui::BeginChild("serve.problem", {area.width(), area.height()}, false,
                          ImGuiWindowFlags_NoScrollbar);
        ui::warning(c, lab_->problem + ".", kSans15);
        ImGui::EndChild();
        return;
    }
    if (lab_.shows("methods")) return draw_methods(c, area);
    if (lab_.shows("draft")) return draft_.draw(c, lab_, area);
    if (lab_.shows("rollout")) return rollout_.draw(c, lab_, area);
    if (lab_.shows("qat")) return qat_.draw(c, lab_, area);
    if (lab_.shows("speed")) return speed_.draw(c, lab_, area);
    draw_kv(c, area);
}

bool ServeView::key(ui::Context&, ui::Key key) {
    if (key != ui::Key::period || !lab_.shows("draft")) return false;
    lab_.act("round");
    return true;
}

std::span<const ViewKey> ServeView::keys() const {
    static constexpr std::array kKeys = {
        ViewKey{".", "the next verification", ui::Key::period, ui::Key::period}};
    return lab_.shows("draft") ? std::span<const ViewKey>(kKeys) : std::span<const ViewKey>();
}

std::vector<std::pair<std::string, std::string>> ServeView::status() const {
    const Chosen& chosen = *lab_->chosen;
    const auto known = [](const std::string& words) { return words.empty() ? std::string("–") : words; };
    if (lab_.shows("draft")) return {{"model", lab_->params.model}, {"data", known(lab_->drafts->data)}};
    if (lab_.shows("rollout")) return {{"model", lab_->params.model}, {"data", known(lab_->rollouts->data)}};
    if (lab_.shows("qat")) return {{"model", known(lab_->qat->network)}, {"data", known(lab_->qat->data)}};
    if (lab_.shows("kv"))
        return {{"model", lab_->params.model}, {"data", lab_->kv->data.empty() ? "–" : lab_->kv->data}};
    if (lab_.shows("speed")) return {{"recorded", known(lab_->device())}};
    return {{"model", chosen.name.empty() ? "–" : chosen.name},
            {"data", chosen.data.empty() ? "–" : chosen.data}};
}

std::unique_ptr<LabView> make_view(Lab& lab) {
    return std::make_unique<ServeView>(static_cast<ServeLab&>(lab));
}

}  // namespace fp8lab::serve
