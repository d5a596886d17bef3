// The view of L15: a step as lanes on top, sums and scaling below, then a row for each GPU, and the training's controls.
#pragma once

#include <span>
#include <string>

#include "labs/gpus/model.h"
#include "labs/table/view.h"
#include "labs/ui/plot/plot.h"
#include "labs/ui/transport.h"

namespace fp8lab::gpus {

class GpusView final : public table::TableView<Gpus> {
  public:
    using TableView::TableView;
    void stage(ui::Context& context, Rect area) override;
    std::vector<std::pair<std::string, std::string>> status() const override;
    bool key(ui::Context& context, ui::Key key) override;
    std::span<const ViewKey> keys() const override;

  private:
    // view_step.cpp
    void draw_step(ui::Context& context, const std::string& title, Rect area);
    // view_charts.cpp
    void draw_charts(ui::Context& context, const std::vector<Figure>& figures, Rect area);
    void draw_sums(ui::Context& context, Figure figure, Rect area);
    void draw_scaling(ui::Context& context, Figure figure, Rect area);
    // view_ranks.cpp
    void draw_ranks(ui::Context& context, const std::string& title, Rect area);
    void draw_empty(ui::Context& context, Rect area);
    std::pair<std::size_t, std::size_t> draw_pages(ui::Context& context, Rect area, std::size_t rows);
    void draw_drift(ui::Context& context, Rect area, Rect whole);
    float draw_weights(ui::Context& context, Rect area, std::size_t first, std::size_t last);
    float draw_bad(ui::Context& context, Rect area, std::size_t first, std::size_t last);
    // view_paper.cpp
    void draw_paper(ui::Context& context, const std::string& title, Rect area);
    // view_panel.cpp
    std::string more_words() const override { return "sharding, GEMMs, link, jitter, seed"; }
    bool draw_own(ui::Context& context, const table::Row& row, const Field& default_field) override;
    void draw_below(ui::Context& context, float width) override;
    void draw_powers(ui::Context& context, const Field& field, const Field& default_field);
    void draw_beside(ui::Context& context, const Field& field);
    void draw_arms(ui::Context& context, float width);
    void draw_sent(ui::Context& context, float width);
    void draw_buttons(ui::Context& context);

    ui::TransportState transport_state() const;
    void act(const std::string& action);  // of the controls below the stage

    ui::PlotState sum_, scaling_;
    ui::Transport transport_{"gpus"};
    int charts_ = 0;  // on a narrow stage: sums or scaling
    int lower_ = 0;   // the GPUs, or the paper; on a low stage first the charts
    int page_ = 0;    // of the rows of GPUs, four each
};

}  // namespace fp8lab::gpus
