// The view of L2: the rulers over the tensor, the interval's two knobs, the handle that slides the ruler, and
// what all of it counts.
#pragma once

#include <optional>

#include "labs/ruler/model.h"
#include "labs/table/view.h"
#include "labs/ui/plot/plot.h"

namespace fp8lab::ruler {

class RulerView final : public table::TableView<Ruler> {
  public:
    using TableView::TableView;
    void stage(ui::Context& context, Rect area) override;
    std::vector<std::pair<std::string, std::string>> status() const override;

  private:
    std::string more_words() const override { return "two more rulers, fixed point, tensor"; }
    void draw_plots(ui::Context& context, Rect area);
    void draw_knob(ui::Context& context, const ui::PlotResult& plot, bool low_end);
    void draw_handle(ui::Context& context, const ui::PlotResult& plot);
    void draw_table(ui::Context& context, Rect area);

    ui::PlotState ruler_plot_, lower_plot_;
    float words_dx_ = 0;  // logical px: how far "ends at" moves aside for the handle, from the last frame
    std::optional<float> grabbed_;  // px from the handle's middle to where it was taken; empty: not held
};

}  // namespace fp8lab::ruler
