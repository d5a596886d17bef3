// The view of L3: the error over all magnitudes with its marker, the tensor under it on the same axis, and
// the metrics with the winner of each in bold.
#pragma once

#include "labs/error/model.h"
#include "labs/ui/plot/plot.h"
#include "labs/view.h"

namespace fp8lab::error {

class ErrorView final : public LabView {
  public:
    explicit ErrorView(ErrorLab& lab) : lab_(lab) {}
    void stage(ui::Context& context, Rect area) override;
    void explore(ui::Context& context, float width) override;
    std::vector<std::pair<std::string, std::string>> status() const override;

  private:
    void draw_plots(ui::Context& context, Rect area);
    void draw_marker(ui::Context& context, const ui::PlotResult& plot);
    void draw_table(ui::Context& context, Rect area);

    ErrorLab& lab_;
    ui::PlotState error_plot_, data_plot_;
    bool more_open_ = false;
};

}  // namespace fp8lab::error
