// The view of L10: the two bars, the table of cells, the difference over tokens, the other plans.
#pragma once

#include "labs/memory/model.h"
#include "labs/ui/plot/plot.h"
#include "labs/view.h"

namespace fp8lab::memory {

class MemoryView final : public LabView {
  public:
    explicit MemoryView(MemoryLab& lab) : lab_(lab) {}
    void stage(ui::Context& context, Rect area) override;
    void explore(ui::Context& context, float width) override;
    std::vector<std::pair<std::string, std::string>> status() const override;

  private:
    void draw_table(ui::Context& context, Rect area);
    void draw_cell(ui::Context& context, const std::string& name, Rect cell);
    void draw_right(ui::Context& context, const std::vector<Figure>& figures, Rect area);
    void draw_tokens(ui::Context& context, const Figure& figure, Rect area);
    void draw_plans(ui::Context& context, Figure figure, Rect area);
    void draw_field(ui::Context& context, const Field& field, const Field& default_field);
    void choose(const Field& field, const std::string& id);
    void draw_result(ui::Context& context, float width);
    void draw_trainer(ui::Context& context, float width);

    MemoryLab& lab_;
    ui::PlotState bars_, tokens_, plans_;
    bool more_open_ = false;
    int picture_ = 0;  // where only one fits: 0 the table, 1 the tokens
};

}  // namespace fp8lab::memory
