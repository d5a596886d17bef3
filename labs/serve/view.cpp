#include "labs/serve/view.h"

#include "labs/ui/stage/stage.h"

namespace fp8lab::serve {

void ServeView::stage(ui::Context& c, Rect area) {
    if (!lab_->problem.empty()) {
        ui::paragraph(c, lab_->problem + ".", area);
        return;
    }
    if (lab_.shows("methods")) return draw_methods(c, area);
    draw_kv(c, area);
}

std::vector<std::pair<std::string, std::string>> ServeView::status() const {
    const Chosen& chosen = *lab_->chosen;
    if (lab_.shows("kv"))
        return {{"model", lab_->params.model}, {"data", lab_->kv->data.empty() ? "–" : lab_->kv->data}};
    return {{"model", chosen.name.empty() ? "–" : chosen.name},
            {"data", chosen.data.empty() ? "–" : chosen.data}};
}

std::unique_ptr<LabView> make_view(Lab& lab) {
    return std::make_unique<ServeView>(static_cast<ServeLab&>(lab));
}

}  // namespace fp8lab::serve
