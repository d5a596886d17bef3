// The view of L14: three experiments behind one switch, each with a chart on top and two parts below.
#pragma once

#include <array>
#include <span>
#include <string>

#include "labs/table/view.h"
#include "labs/ui/plot/plot.h"
#include "labs/ui/stage/stage.h"
#include "labs/wide/model.h"

namespace fp8lab::wide {

class WideView final : public table::TableView<Wide> {
  public:
    using TableView::TableView;
    void stage(ui::Context& context, Rect area) override;
    std::vector<std::pair<std::string, std::string>> status() const override;
    bool key(ui::Context& context, ui::Key key) override;
    std::span<const ViewKey> keys() const override;

  private:
    // view_attention.cpp
    void draw_attention(ui::Context& context, Rect area);
    void draw_keys(ui::Context& context, Figure figure, Rect area);
    void draw_casts(ui::Context& context, Rect area);
    void draw_cuts(ui::Context& context, Rect area);
    // view_swiglu.cpp
    void draw_swiglu(ui::Context& context, Rect area);
    void draw_strip(ui::Context& context, const ui::PlotResult& plot, Rect area, int rows);
    void draw_scrub(ui::Context& context, const ui::PlotResult& plot, float y);
    void draw_norms(ui::Context& context, Figure figure, Rect area);
    void draw_pair(ui::Context& context, Figure figure, Rect area);
    void draw_inliers(ui::Context& context, Rect area);
    // view_optimiser.cpp
    void draw_optimiser(ui::Context& context, Rect area);
    void draw_forget(ui::Context& context, Figure figure, Rect area);
    void draw_gap(ui::Context& context, Figure figure, Rect area);
    void draw_bytes(ui::Context& context, Rect area);
    void draw_cliff(ui::Context& context, Figure figure, Rect area);
    // view_panel.cpp
    std::string more_words() const override;
    bool draw_own(ui::Context& context, const table::Row& row, const Field& default_field) override;
    void draw_below(ui::Context& context, float width) override;
    void draw_keys_slider(ui::Context& context, const Field& field);
    void draw_alignment(ui::Context& context, const Field& field, const Field& default_field);
    void draw_headline(ui::Context& context);
    void draw_summary(ui::Context& context, float width);
    void draw_buttons(ui::Context& context);

    void go_to(int step);

    ui::PlotState upper_, left_, right_;
    int part_ = 0;  // on a narrow stage: the left or the right part
    // Until then the weight rows are shown instead of the norms: while the pointer or the ring is on Alignment, and a
    // little longer, since the pointer has to reach them.
    double pair_until_ = 0;  // s
    bool pair_held_ = false;
};

}  // namespace fp8lab::wide
