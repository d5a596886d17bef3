// The view of L11: in the experiment mix the figure of bits and divergence over two tables, the layers with their chips
// and the outputs against FP32.
#pragma once

#include <string>
#include <vector>

#include "labs/lower/model.h"
#include "labs/table/view.h"
#include "labs/ui/plot/plot.h"

namespace fp8lab::lower {

inline constexpr std::size_t kMostRows = 6;  // of the layers over the outputs; more scroll

class LowerView final : public table::TableView<Lower> {
  public:
    using TableView::TableView;
    void stage(ui::Context& context, Rect area) override;
    std::vector<std::pair<std::string, std::string>> status() const override;

  private:
    // view.cpp
    void draw_mix(ui::Context& context, Rect area);
    void draw_pareto(ui::Context& context, const Figure& figure, Rect area);
    void choose_format(ui::Context& context, const Figure& figure, const ui::PlotResult& plot);
    Rect draw_knob(ui::Context& context, const ui::PlotResult& plot);  // where it is
    // The figure without the words that make room for others, and these.
    static Figure without_names(const Figure& figure, std::vector<Series>& names);
    void draw_names(ui::Context& context, const Figure& figure, const std::vector<Series>& names,
                    const ui::PlotResult& plot, Rect knob);
    void draw_dots(ui::Context& context, const Figure& figure, const ui::PlotResult& plot);
    // view_ranges.cpp
    void draw_ranges(ui::Context& context, Rect area);
    void draw_cascade(ui::Context& context, Rect area);
    void draw_speed_up(ui::Context& context, Rect area);
    void draw_kv(ui::Context& context, Rect area);
    void draw_token_figures(ui::Context& context, Rect area);
    // A press or a drag over the plot, and arrow keys, set a field to the value of x.
    void draw_cursor(ui::Context& context, const ui::PlotResult& plot, std::string_view field, double step);
    // view_tables.cpp: both draw from the top of `area`; returned is where the layers end.
    void draw_tables(ui::Context& context, Rect area);
    float draw_layers(ui::Context& context, Rect area, float row);
    void draw_layer(ui::Context& context, std::size_t layer, Rect line);
    void draw_outputs(ui::Context& context, Rect area, float row);
    void draw_chip(ui::Context& context, std::size_t layer, bool activation, Rect cell);
    // view_panel.cpp
    std::string more_words() const override;
    bool draw_own(ui::Context& context, const table::Row& row, const Field& default_field) override;
    void draw_below(ui::Context& context, float width) override;
    void draw_headline(ui::Context& context);
    void draw_neighbours(ui::Context& context, float width);
    void draw_buttons(ui::Context& context);
    void draw_token_rows(ui::Context& context);

    ui::PlotState upper_, left_, right_, third_;
    int part_ = 0;     // on a low stage: the layers or the outputs
    int picture_ = 0;  // on a narrow stage: the left or the right figure
};

}  // namespace fp8lab::lower
