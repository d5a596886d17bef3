// The view of L7: the experiment's two figures, the contenders' numbers under them, and its controls.
#pragma once

#include "labs/adding/model.h"
#include "labs/table/view.h"
#include "labs/ui/plot/plot.h"

namespace fp8lab::adding {

class AddingView final : public table::TableView<Adding> {
  public:
    using TableView::TableView;
    void stage(ui::Context& context, Rect area) override;
    std::vector<std::pair<std::string, std::string>> status() const override;

  private:
    std::string more_words() const override { return "seed"; }
    void draw_below(ui::Context&, float width) override;  // where the hardware's numbers are from
    void draw_table(ui::Context& context, const Table& table, Rect area);

    std::string drawn_;  // the experiment that the plots' ranges belong to
    ui::PlotState main_plot_, why_plot_;
};

}  // namespace fp8lab::adding
