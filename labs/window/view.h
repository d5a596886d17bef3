// The view of L4: four numbers, the histogram under the window with its handle, and below it the margin or
// the loss scale beside one number of one's own.
#pragma once

#include <optional>

#include "labs/ui/plot/plot.h"
#include "labs/view.h"
#include "labs/window/model.h"

namespace fp8lab::window {

class WindowView final : public LabView {
  public:
    explicit WindowView(WindowLab& lab) : lab_(lab) {}
    void stage(ui::Context& context, Rect area) override;
    void explore(ui::Context& context, float width) override;
    std::vector<std::pair<std::string, std::string>> status() const override;
    void present(ui::Context& context, const Figure& figure, ui::PlotState& state, Rect area) override;

  private:
    void draw_numbers(ui::Context& context, Rect area);
    void draw_window(ui::Context& context, const Figure& figure, Rect area);
    void draw_handle(ui::Context& context, const ui::PlotResult& plot);
    void draw_lower(ui::Context& context, const std::vector<Figure>& figures, Rect area);
    void draw_probe(ui::Context& context, Rect area);
    void draw_field(ui::Context& context, const Field& field, const Field& default_field);
    void draw_table(ui::Context& context, float width);

    WindowLab& lab_;
    ui::PlotState window_plot_, lower_plot_;
    double grabbed_ = 0;              // where on the axis the window was taken; 0: not held
    std::optional<Range> held_axis_;  // while it is held the axis stays, whatever the figure would show
    int picture_ = 0;                 // 0: margin, 1: loss scale
    bool more_open_ = false;
};

}  // namespace fp8lab::window
