// The view of L18: a switch of parts in the panel, and on the stage the figures of the part.
#pragma once

#include <string>

#include "labs/experts/model.h"
#include "labs/table/view.h"
#include "labs/ui/plot/plot.h"

namespace fp8lab::experts {

class MixtureView final : public table::TableView<Mixture> {
  public:
    using TableView::TableView;
    void stage(ui::Context& context, Rect area) override;
    std::vector<std::pair<std::string, std::string>> status() const override;

  private:
    // view_routing.cpp
    void draw_routing(ui::Context& context, Rect area);
    void draw_pairs(ui::Context& context, Rect area);
    void draw_margins(ui::Context& context, Rect area);
    void draw_routing_rows(ui::Context& context);  // of the panel
    // view_groups.cpp
    void draw_groups(ui::Context& context, Rect area);
    void draw_groups_rows(ui::Context& context);
    // view_hop.cpp
    void draw_hop(ui::Context& context, Rect area);
    void draw_hop_table(ui::Context& context, Rect area);
    void draw_hop_rows(ui::Context& context);
    // view_training.cpp
    void draw_training(ui::Context& context, Rect area);
    void draw_training_rows(ui::Context& context);
    // view_panel.cpp
    std::string more_words() const override;
    void draw_below(ui::Context& context, float width) override;

    ui::PlotState upper_, middle_, lower_;
};

// Of a figure whose title is a heading.
Figure without_title(Figure figure);

}  // namespace fp8lab::experts
