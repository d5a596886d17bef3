// The stages and the rows of the panel of the parts draft, rollout, qat and speed of L17.
#pragma once

#include "labs/serve/model.h"
#include "labs/ui/context.h"
#include "labs/ui/plot/plot.h"

namespace fp8lab::serve {

class DraftStage {
  public:
    void draw(ui::Context& context, ServeLab& lab, Rect area);
    static void draw_rows(ui::Context& context, ServeLab& lab);  // of the panel

  private:
    // `top`: where the plot begins.
    void draw_speedup(ui::Context& context, ServeLab& lab, Rect area, float top);
    void draw_acceptance(ui::Context& context, ServeLab& lab, Rect area, float top);
    static void draw_round(ui::Context& context, ServeLab& lab, Rect area);

    ui::PlotState speedup_, acceptance_;
    int half_ = 0;  // on a narrow stage: speed-up or acceptance
};

class RolloutStage {
  public:
    void draw(ui::Context& context, ServeLab& lab, Rect area);
    static void draw_rows(ui::Context& context, ServeLab& lab);

  private:
    void draw_ess(ui::Context& context, ServeLab& lab, Rect area, float top);
    void draw_ratios(ui::Context& context, ServeLab& lab, Rect area, float top);
    static void draw_table(ui::Context& context, ServeLab& lab, Rect area);

    ui::PlotState ess_, ratios_;
    int half_ = 0;
};

class QatStage {
  public:
    void draw(ui::Context& context, ServeLab& lab, Rect area);
    static void draw_rows(ui::Context& context, ServeLab& lab);

  private:
    void draw_curves(ui::Context& context, ServeLab& lab, Rect area);
    static void draw_table(ui::Context& context, ServeLab& lab, Rect area);

    ui::PlotState curves_;
};

class SpeedStage {
  public:
    void draw(ui::Context& context, ServeLab& lab, Rect area);
    static void draw_rows(ui::Context& context, ServeLab& lab);

  private:
    void draw_curves(ui::Context& context, ServeLab& lab, const Speeds& speeds, Rect area);
    static void draw_table(ui::Context& context, ServeLab& lab, const Speeds& speeds, Rect area);

    ui::PlotState curves_;
};

// For a stage that names the lines at their ends: the figure without its legend, and without the title that a heading has.
Figure bare_of_words(Figure figure);

// Two parts with a line between them, the left one wider; on a narrow stage one of them behind a switch, whose choice is `part`.
struct WideLeft {
    Rect left, right;
    bool shows_left = true, shows_right = true;
};
WideLeft wide_left(ui::Context& context, const std::string& name, Rect area,
                   const std::array<std::string, 2>& names, int& part);

}  // namespace fp8lab::serve
