// The view of L10: the two bars, the table of cells, the difference over tokens, the other plans.
#pragma once

#include "labs/memory/model.h"
#include "labs/table/view.h"
#include "labs/ui/plot/plot.h"

namespace fp8lab::memory {

class MemoryView final : public table::TableView<Memory> {
  public:
    using TableView::TableView;
    void stage(ui::Context& context, Rect area) override;
    std::vector<std::pair<std::string, std::string>> status() const override;

  private:
    void draw_table(ui::Context& context, Rect area);
    void draw_cell(ui::Context& context, const std::string& name, Rect cell);
    void draw_right(ui::Context& context, const std::vector<Figure>& figures, Rect area);
    void draw_tokens(ui::Context& context, const Figure& figure, Rect area);
    void draw_plans(ui::Context& context, Figure figure, Rect area);
    std::string more_words() const override { return "ZeRO, GPUs, offload, PCIe, attention"; }
    bool draw_own(ui::Context& context, const table::Row& row, const Field& default_field) override;
    void draw_below(ui::Context& context, float width) override;
    void draw_result(ui::Context& context, float width);
    void draw_trainer(ui::Context& context, float width);

    ui::PlotState bars_, tokens_, plans_;
    int picture_ = 0;  // where only one fits: 0 the table, 1 the tokens
};

}  // namespace fp8lab::memory
