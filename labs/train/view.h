// The stage and the panel of L8. Holds what is only on screen: axis ranges, what is folded, a slider in
// mid-drag.
#pragma once

#include <memory>

#include "labs/train/model.h"
#include "labs/ui/plot/plot.h"
#include "labs/ui/transport.h"
#include "labs/ui/widgets.h"
#include "labs/view.h"

namespace fp8lab::train {

class TrainView : public LabView {
  public:
    explicit TrainView(TrainLab& lab) : lab_(lab) {}
    void stage(ui::Context&, Rect area) override;
    void explore(ui::Context&, float width) override;
    std::vector<std::pair<std::string, std::string>> status() const override;
    bool key(ui::Context&, ui::Key key) override;  // Space: run or pause; full stop: one step
    std::span<const ViewKey> keys() const override;

  private:
    void curves(ui::Context&, const std::vector<Figure>& figures, Rect area);
    std::string take_gap_label(Figure& gap) const;
    void right_column(ui::Context&, const std::vector<Figure>& figures, Rect area);
    void boundaries(ui::Context&, const std::vector<Figure>& figures, Rect area);
    ui::TransportState transport_state() const;

    void backend_choice(ui::Context&);
    void speed_choice(ui::Context&);
    void size_choice(ui::Context&);
    void arm_choice(ui::Context&, const char* name, std::size_t arm);
    void edit(ui::Context&, std::string_view name);
    void settings(ui::Context&);
    bool switch_row(ui::Context&, const std::string& name, const std::string& label,
                    std::span<const std::string> choices, int& selected,
                    std::size_t enabled = static_cast<std::size_t>(-1));
    void show_tensor(ui::Context&);
    void more(ui::Context&);
    void option_switches(ui::Context&);  // and the text for what they do not have
    void numbers(ui::Context&, float width);
    void copy_buttons(ui::Context&, float width);
    void tell_end(ui::Context&);

    TrainLab& lab_;
    ui::PlotState loss_, gap_, histogram_, step_, boundary_[3];
    std::string picture_;  // the label of the one that the right column shows; empty: the first that there is
    int recording_ = 0;    // of those that it shows as a table
    bool more_cast_ = false, more_run_ = false;
    bool ran_ = false;  // when it was last drawn
    ui::Transport transport_{"train"};
};

// Rows of x1 w1 dy1 ... of one arm, with a strip for each column. A click on a row shows that tensor's
// histogram: `shown` takes its name. Narrower than 474 px (logical) the scale goes first, then the amax.
void health_table(ui::Context&, Rect area, const ArmTrack& arm, const Recipe& recipe, const ModelPlan& plan,
                  std::string& shown);

// The steps of a recording as a table, under its badge, with a menu of the others; or why one cannot be read.
void recorded_table(ui::Context&, Rect area, const Shipped& recorded, int& chosen);

}  // namespace fp8lab::train
