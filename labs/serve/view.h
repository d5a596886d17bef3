// The view of L17: a switch of parts in the panel, and on the stage the figure and the tables of the part.
#pragma once

#include <string>

#include "labs/serve/model.h"
#include "labs/serve/view_parts.h"
#include "labs/table/view.h"
#include "labs/ui/plot/plot.h"

namespace fp8lab::serve {

class ServeView final : public table::TableView<Serve> {
  public:
    using TableView::TableView;
    void stage(ui::Context& context, Rect area) override;
    std::vector<std::pair<std::string, std::string>> status() const override;
    bool key(ui::Context& context, ui::Key key) override;
    std::span<const ViewKey> keys() const override;

  private:
    // view_methods.cpp
    void draw_methods(ui::Context& context, Rect area);
    void draw_stems(ui::Context& context, const Figure& figure, Rect area);
    void draw_layers(ui::Context& context, Rect area, float row);
    void draw_layer(ui::Context& context, std::size_t layer, Rect line);
    void draw_gains(ui::Context& context, Rect area);
    void draw_methods_rows(ui::Context& context);  // of the panel
    // view_kv.cpp
    void draw_kv(ui::Context& context, Rect area);
    void draw_saturated(ui::Context& context, const ui::PlotResult& plot, Rect area);
    void draw_caches(ui::Context& context, Rect area, float row);
    void draw_kv_rows(ui::Context& context);
    // view_panel.cpp
    std::string more_words() const override;
    bool draw_own(ui::Context& context, const table::Row& row, const Field& default_field) override;
    void draw_below(ui::Context& context, float width) override;
    // A slider of powers of two; a switch of choices with long names.
    void draw_powers(ui::Context& context, const Field& field, const Field& default_field);
    void draw_switch(ui::Context& context, const Field& field);

    ui::PlotState upper_;
    DraftStage draft_;
    RolloutStage rollout_;
    QatStage qat_;
    SpeedStage speed_;
};

}  // namespace fp8lab::serve
