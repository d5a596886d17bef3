// The stage and the panel of L13. Holds what is only on screen: axis ranges, what is folded.
#pragma once

#include <string>
#include <vector>

#include "labs/transformer/model.h"
#include "labs/ui/plot/plot.h"
#include "labs/ui/transport.h"
#include "labs/ui/widgets.h"
#include "labs/view.h"

namespace fp8lab::transformer {

class TransformerView final : public LabView {
  public:
    explicit TransformerView(TransformerLab& lab) : lab_(lab) {}
    void stage(ui::Context&, Rect area) override;
    void explore(ui::Context&, float width) override;
    std::vector<std::pair<std::string, std::string>> status() const override;
    bool key(ui::Context&, ui::Key key) override;  // Space: run or pause; full stop: one step
    std::span<const ViewKey> keys() const override;

  private:
    struct Layout;
    // view_block.cpp: the flow of a block and the strips below its boxes
    void block(ui::Context&, const std::string& title, Rect area, bool low);
    void block_switch(ui::Context&, Rect line);
    void flow(ui::Context&, const Layout&, const std::vector<Operation>&);
    void strips(ui::Context&, const Layout&, const std::vector<Operation>&);
    void columns(ui::Context&, const Layout&, const std::vector<Operation>&);
    void select(const std::string& tensor) { set_field(lab_.fields(), "tensor=" + tensor); }
    // view.cpp
    void curves(ui::Context&, const std::vector<Figure>& own, Rect area);
    // The pictures at the right: the histogram always, the times of a step where there are some, recorded ones where
    // there is no GPU, and the text where it has no place of its own.
    std::vector<std::string> pictures(const std::vector<Figure>& figures, bool with_text) const;
    void picture(ui::Context&, const std::vector<Figure>& figures, const std::string& name, Rect area);
    void histogram(ui::Context&, const Figure& figure, Rect area);
    std::vector<std::string> operands() const;  // of the selected GEMM: "x", "w", "dy"
    float tensor_switch_width(const ui::Context&) const;
    void right_column(ui::Context&, const std::vector<Figure>& figures, Rect area, bool with_text);
    void recorded(ui::Context&, Rect area);
    void text(ui::Context&, Rect area);
    ui::TransportState transport_state() const;
    // view_panel.cpp
    void backend_choice(ui::Context&);
    void recipe_menu(ui::Context&, const char* name, const std::string& label, std::size_t arm);
    void switch_row(ui::Context&, const char* name, std::size_t enabled = static_cast<std::size_t>(-1),
                    const std::string& why = {});
    bool labelled_switch(ui::Context&, const Field& field, std::span<const std::string> labels, int& selected,
                         std::size_t enabled, const std::string& why);
    void more(ui::Context&);
    void numbers(ui::Context&, float width);
    void notes(ui::Context&);
    void copy_buttons(ui::Context&, float width);

    TransformerLab& lab_;
    ui::PlotState loss_, gap_, histogram_, step_;
    std::string picture_;  // the label of the one chosen last; empty: the first that there is
    int recording_ = 0, recorded_shape_ = 0;
    bool more_open_ = false;
    ui::Transport transport_{"transformer"};
};

}  // namespace fp8lab::transformer
