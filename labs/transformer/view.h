// The stage and the panel of L13. Holds what is only on screen.
#pragma once

#include <string>
#include <vector>

#include "labs/live/view.h"
#include "labs/transformer/model.h"

namespace fp8lab::transformer {

class TransformerView final : public live::SessionView {
  public:
    explicit TransformerView(TransformerLab& lab) : SessionView(lab), lab_(lab) {}
    void stage(ui::Context&, Rect area) override;
    void explore(ui::Context&, float width) override;
    std::vector<std::pair<std::string, std::string>> status() const override;

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
    float lines_of(ui::Context&, Rect area, std::size_t arm, float y);
    // view_panel.cpp
    void draw_row(ui::Context&, const table::Row& row, const Field& default_field) override;
    void align_button(ui::Context&);
    void numbers(ui::Context&, float width);
    void notes(ui::Context&);

    TransformerLab& lab_;
    int recorded_shape_ = 0;
};

}  // namespace fp8lab::transformer
