#include "labs/serve/view.h"

#include "labs/ui/stage/stage.h"

namespace fp8lab::serve {

void ServeView::stage(ui::Context& c, Rect area) {
    if (!lab_->problem.empty()) {
        ui::paragraph(c, lab_->problem + ".", area);
        return;
    }
    if (lab_.shows("methods")) draw_methods(c, area);
}

std::vector<std::pair<std::string, std::string>> ServeView::status() const {
    const Chosen& chosen = *lab_->chosen;
    return {{"model", chosen.name.empty() ? "–" : chosen.name},
            {"data", chosen.data.empty() ? "–" : chosen.data}};
}

std::unique_ptr<LabView> make_view(Lab& lab) {
    return std::make_unique<ServeView>(static_cast<ServeLab&>(lab));
}

}  // namespace fp8lab::serve
