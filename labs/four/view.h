// The view of L12: the codes of a tensor before and after the rotation, one block in numbers, six kinds of tensor,
// the mean of n casts.
#pragma once

#include <array>
#include <string>

#include "labs/four/model.h"
#include "labs/table/view.h"
#include "labs/ui/plot/plot.h"

namespace fp8lab::four {

class FourView final : public table::TableView<Four> {
  public:
    using TableView::TableView;
    void stage(ui::Context& context, Rect area) override;
    std::vector<std::pair<std::string, std::string>> status() const override;

  private:
    static constexpr float kBlockHeight = 108;  // of the marked block, logical px
    bool shows_block(const ui::Context& context, Rect area) const;
    bool block_in_switch(const ui::Context& context, Rect area) const;
    // view_tiles.cpp
    float draw_tiles(ui::Context& context, Figure figure, Rect area);  // returns where it ends
    void draw_legend(ui::Context& context, Rect line);
    void draw_map(ui::Context& context, const ui::PlotResult& plot, std::size_t which);
    void draw_heads(ui::Context& context, const ui::PlotResult& plot, std::size_t which, float right);
    void draw_numbers(ui::Context& context, std::size_t which, Rect line, bool scale);
    void draw_problem(ui::Context& context, Rect area);
    // view_block.cpp
    void draw_block(ui::Context& context, Rect area);
    void draw_elements(ui::Context& context, const Marked& marked, Rect area);
    void follow_pointer(const Marked& marked);
    // view_charts.cpp
    // title_to: where its title ends, since a switch may be there.
    void draw_data(ui::Context& context, Figure figure, Rect area, float title_to);
    void draw_mean(ui::Context& context, Figure figure, Rect area);
    // view_panel.cpp
    std::string more_words() const override { return "casts, block, signs, seed, own tensor"; }
    void draw_below(ui::Context& context, float width) override;
    void draw_result(ui::Context& context, float width);
    void draw_copies(ui::Context& context, float width);

    ui::PlotState tiles_, data_, mean_;
    int picture_ = 0;                  // where only one fits: 0 the data, 1 the means
    std::array<Rect, 2> marked_ = {};  // the marked block in each map
    int pointed_ = -1;                 // column of the marked block under the mouse
};

}  // namespace fp8lab::four
