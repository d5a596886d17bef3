// The view of L4: four numbers, the histogram under the window with its handle, and below it the margin or
// the loss scale beside one number of one's own.
#pragma once

#include <optional>

#include "labs/table/view.h"
#include "labs/ui/plot/plot.h"
#include "labs/window/model.h"

namespace fp8lab::window {

class WindowView final : public table::TableView<Window> {
  public:
    using TableView::TableView;
    void stage(ui::Context& context, Rect area) override;
    std::vector<std::pair<std::string, std::string>> status() const override;
    void present(ui::Context& context, const Figure& figure, ui::PlotState& state, Rect area) override;

  private:
    std::string more_words() const override { return "overflow, outliers, loss scale"; }
    bool draw_own(ui::Context&, const table::Row&, const Field& default_field) override;
    void draw_below(ui::Context&, float width) override;  // both formats at this margin
    void slide(double from, double to) { lab_->slide(from, to), lab_.update(); }
    void draw_numbers(ui::Context& context, Rect area);
    void draw_window(ui::Context& context, const Figure& figure, Rect area);
    void draw_handle(ui::Context& context, const ui::PlotResult& plot);
    void draw_lower(ui::Context& context, const std::vector<Figure>& figures, Rect area);
    void draw_probe(ui::Context& context, Rect area);

    ui::PlotState window_plot_, lower_plot_;
    double grabbed_ = 0;              // where on the axis the window was taken; 0: not held
    std::optional<Range> held_axis_;  // while it is held the axis stays, whatever the figure would show
    int picture_ = 0;                 // 0: margin, 1: loss scale
};

}  // namespace fp8lab::window
