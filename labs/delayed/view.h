// The view of L5: the timeline over strips that share its columns, the transport, and the step under the
// cursor taken apart in the machine's own order.
#pragma once

#include "labs/delayed/model.h"
#include "labs/table/view.h"
#include "labs/ui/plot/plot.h"

namespace fp8lab::delayed {

class DelayedView final : public table::TableView<Delayed> {
  public:
    using TableView::TableView;
    void stage(ui::Context& context, Rect area) override;
    std::vector<std::pair<std::string, std::string>> status() const override;
    // Space: play or pause. B: A, A + B, B. Comma and full stop: a step back and on.
    bool key(ui::Context& context, ui::Key key) override;
    std::span<const ViewKey> keys() const override;

  private:
    ui::PlotResult draw_timeline(ui::Context& context, Rect area);
    void draw_scrub(ui::Context& context, const ui::PlotResult& plot, float y);
    void draw_transport(ui::Context& context, Rect area);
    void play(ui::Context& context);
    void toggle_play();
    std::string more_words() const override { return "interval, tensor, seed"; }
    bool draw_own(ui::Context&, const table::Row&, const Field& default_field) override;
    void draw_below(ui::Context&, float width) override;  // A against B

    ui::PlotState plot_;
    bool playing_ = false;
    double next_at_ = 0;  // ImGui's clock, s: when play takes its next step
};

// Rows of numbers under the columns of the plot; where columns are too narrow for numbers, bars, and the
// number of the step under the cursor. Returns the y below them. Probes "delayed.strip.<row>.<step>" give the text of
// each place.
constexpr float kLabelWidth = 100;  // left of the plot, logical px
float draw_strips(ui::Context& context, const Delayed& lab, const ui::PlotResult& plot, Rect area,
                  bool all_rows);

// The step under the cursor: what was cast, what the history remembers, which scale follows.
void draw_boxes(ui::Context& context, const Delayed& lab, Rect area);

}  // namespace fp8lab::delayed
