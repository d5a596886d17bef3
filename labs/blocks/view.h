// The view of L6: three maps of the matrix, of which the block under the mouse is outlined in each, and the
// schemes with their price and their yield.
#pragma once

#include <array>
#include <optional>

#include "labs/blocks/model.h"
#include "labs/table/view.h"
#include "labs/ui/plot/plot.h"

namespace fp8lab::blocks {

class BlocksView final : public table::TableView<Blocks> {
  public:
    using TableView::TableView;
    void stage(ui::Context& context, Rect area) override;
    std::vector<std::pair<std::string, std::string>> status() const override;

  private:
    std::string more_words() const override { return "element, size, own tensor"; }
    void draw_maps(ui::Context& context, const std::vector<Figure>& figures, Rect area);
    void draw_block(ui::Context& context, std::span<const ui::PlotResult> plots, Rect line);
    void choose(ui::Context&, const Scheme& scheme, Rect row, float right);
    void draw_schemes(ui::Context& context, Figure figure, Rect area);

    std::array<ui::PlotState, 3> map_plots_;
    ui::PlotState schemes_plot_;
};

}  // namespace fp8lab::blocks
