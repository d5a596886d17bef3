// The view of L5: the timeline over strips that share its columns, the transport, and the step under the
// cursor taken apart in the machine's own order.
#pragma once

#include "labs/delayed/model.h"
#include "labs/ui/plot/plot.h"
#include "labs/view.h"

namespace fp8lab::delayed {

class DelayedView final : public LabView {
  public:
    explicit DelayedView(DelayedLab& lab) : lab_(lab) {}
    void stage(ui::Context& context, Rect area) override;
    void explore(ui::Context& context, float width) override;
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
    void draw_more(ui::Context& context);
    void draw_comparison(ui::Context& context, float width);

    DelayedLab& lab_;
    ui::PlotState plot_;
    bool more_open_ = false, playing_ = false;
    double next_at_ = 0;  // ImGui's clock, s: when play takes its next step
};

// Rows of numbers under the columns of the plot; where columns are too narrow for numbers, bars, and the
// number of the step under the cursor. Returns the y below them. Probes "delayed.strip.<row>.<step>" give the text of
// each place.
constexpr float kLabelWidth = 100;  // left of the plot, logical px
float draw_strips(ui::Context& context, const DelayedLab& lab, const ui::PlotResult& plot, Rect area,
                  bool all_rows);

// The step under the cursor: what was cast, what the history remembers, which scale follows.
void draw_boxes(ui::Context& context, const DelayedLab& lab, Rect area);

}  // namespace fp8lab::delayed
