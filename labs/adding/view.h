// The view of L7: the experiment's two figures, the contenders' numbers under them, and its controls.
#pragma once

#include "labs/adding/model.h"
#include "labs/ui/plot/plot.h"
#include "labs/view.h"

namespace fp8lab::adding {

class AddingView final : public LabView {
  public:
    explicit AddingView(AddingLab& lab) : lab_(lab) {}
    void stage(ui::Context& context, Rect area) override;
    void explore(ui::Context& context, float width) override;
    std::vector<std::pair<std::string, std::string>> status() const override;

  private:
    void explore_hardware(ui::Context& context);
    void draw_table(ui::Context& context, const Table& table, Rect area);

    AddingLab& lab_;
    std::string drawn_;  // the experiment that the plots' ranges belong to
    ui::PlotState main_plot_, why_plot_;
    bool more_open_ = false;
};

}  // namespace fp8lab::adding
