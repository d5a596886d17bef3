// The view of L9: the roofline on top, below it a figure that a switch chooses, and one step with its prediction.
#pragma once

#include <string>

#include "labs/speed/model.h"
#include "labs/ui/plot/plot.h"
#include "labs/view.h"

namespace fp8lab::speed {

class SpeedView final : public LabView {
  public:
    explicit SpeedView(SpeedLab& lab) : lab_(lab) {}
    void stage(ui::Context& context, Rect area) override;
    void explore(ui::Context& context, float width) override;
    void lesson_end(ui::Context& context) override;  // when to use FP8, with these times
    std::vector<std::pair<std::string, std::string>> status() const override;
    bool key(ui::Context&, ui::Key key) override;  // Space: measure here; Escape: stop
    std::span<const ViewKey> keys() const override;

  private:
    void draw_roofline(ui::Context& context, Rect area);
    void draw_handle(ui::Context& context, const ui::PlotResult& plot);
    void draw_hover(ui::Context& context, const ui::PlotResult& plot);
    void draw_lower(ui::Context& context, Rect area);
    void draw_align(ui::Context& context, Rect area);
    void draw_formats(ui::Context& context, Rect area);
    void draw_step(ui::Context& context, Rect area);
    void size_slider(ui::Context& context, const char* name);
    void offset_buttons(ui::Context& context, const char* name, Rect row);
    void measure_button(ui::Context& context);
    void numbers(ui::Context& context, float width);
    void set(const std::string& assignment) { set_field(lab_.fields(), assignment); }
    void set(const Layer& layer);

    SpeedLab& lab_;
    ui::PlotState roofline_, lower_, step_;
    bool more_open_ = false;
};

}  // namespace fp8lab::speed
