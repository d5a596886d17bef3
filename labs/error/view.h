// The view of L3: the error over all magnitudes with its marker, the tensor under it on the same axis, and
// the metrics with the winner of each in bold.
#pragma once

#include "labs/error/model.h"
#include "labs/table/view.h"
#include "labs/ui/plot/plot.h"

namespace fp8lab::error {

class ErrorView final : public table::TableView<RoundingError> {
  public:
    using TableView::TableView;
    void stage(ui::Context& context, Rect area) override;
    std::vector<std::pair<std::string, std::string>> status() const override;

  private:
    std::string more_words() const override { return "size, outliers, own tensor"; }
    void draw_plots(ui::Context& context, Rect area);
    void draw_marker(ui::Context& context, const ui::PlotResult& plot);
    void draw_table(ui::Context& context, Rect area);

    ui::PlotState error_plot_, data_plot_;
};

}  // namespace fp8lab::error
