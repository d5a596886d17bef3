// The stage and the panel of L8. Holds what is only on screen: axis ranges, what is folded.
#pragma once

#include "labs/live/view.h"
#include "labs/train/model.h"

namespace fp8lab::train {

class TrainView : public live::SessionView {
  public:
    explicit TrainView(TrainLab& lab) : SessionView(lab), lab_(lab) {}
    void stage(ui::Context&, Rect area) override;
    void explore(ui::Context&, float width) override;
    std::vector<std::pair<std::string, std::string>> status() const override;

  private:
    void curves(ui::Context&, const std::vector<Figure>& figures, Rect area);
    std::string take_gap_label(Figure& gap) const;
    void health(ui::Context&, Rect area);
    void right_column(ui::Context&, const std::vector<Figure>& figures, Rect area);
    void boundaries(ui::Context&, const std::vector<Figure>& figures, Rect area);
    void draw_recorded(ui::Context&, Rect area, const Shipped& recorded);
    void tell_end(ui::Context&);
    std::size_t shown_arm() const { return lab_.spec().arms.size() > 1 ? 1 : 0; }

    void draw_row(ui::Context&, const table::Row& row, const Field& default_field) override;
    void speed_choice(ui::Context&, const Field& field);
    void margin_slider(ui::Context&, const Field& field);
    void size_choice(ui::Context&, const Field& field);
    void tensor_class(ui::Context&, const Field& field);
    void poison_button(ui::Context&);
    void folds(ui::Context&);
    void option_switches(ui::Context&, const Field& field);  // and the text for what they do not have
    void numbers(ui::Context&, float width);
    void notes(ui::Context&);

    TrainLab& lab_;
    ui::PlotState boundary_[3];
    bool casts_open_ = false, training_open_ = false;
    bool ran_ = false;  // when it was last drawn
};

// Rows of x1 w1 dy1 ... of one arm, with a strip for each column. A click on a row shows that tensor's
// histogram: `shown` takes its name. Narrower than 474 px (logical) the scale goes first, then the amax. With micro-batches
// the last column has the share of its casts that saturate.
void health_table(ui::Context&, Rect area, const ArmTrack& arm, const Recipe& recipe, const ModelPlan& plan,
                  int micro_batches, std::string& shown);

}  // namespace fp8lab::train
