// The view of the tab "A run": loss, a lane for each tensor, and below them the findings and the selected tensor.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "labs/ui/plot/plot.h"
#include "labs/view.h"
#include "labs/workbench/model.h"

namespace fp8lab::workbench {

class RunView {
  public:
    explicit RunView(WorkbenchLab& lab) : lab_(lab) {}
    void strip(ui::Context& context, Rect strip);  // name, size and progress, right of the switch of the tabs
    void stage(ui::Context& context, Rect area);
    std::vector<std::pair<std::string, std::string>> status() const;
    bool key(ui::Key key);
    static std::span<const ViewKey> keys();
    // The panel.
    void draw_notes(ui::Context& context);  // under the file
    bool draw_own(ui::Context& context, const table::Row& row, const Field& default_field);
    void draw_below(ui::Context& context, float width);

  private:
    // Steps as x, physical px.
    struct Time {
        float x0 = 0, x1 = 1;
        std::int32_t first = 0, last = 1;
        float x_of(double step) const;
        double step_at(float x) const;
    };
    struct FindingColumns {  // right edges of numbers, left edges of words, px
        float step = 0, lost = 0, cause = 0;
        bool treats = true;  // whether what treats it has room
    };
    const RunTab& run() const { return lab_->doctor; }
    const RunLog& log() const { return *run().log(); }
    bool covered() const { return lab_->params.covered; }  // an exercise asks for the findings
    void set(const std::string& assignment) { set_field(lab_.fields(), assignment); }
    void choose(std::size_t tensor) { set("run_tensor=" + log().tensors.at(tensor).name()); }

    // view_run.cpp
    void draw_empty(ui::Context& context, Rect area);
    void draw_tensor(ui::Context& context, Rect area);
    void draw_below_lanes(ui::Context& context, Rect area, bool tall);
    // view_run_lanes.cpp
    float label_width(const ui::Context& context, Rect area, const std::vector<std::size_t>& lanes) const;
    float draw_loss(ui::Context& context, Rect area, const Time& time);
    void draw_loss_words(ui::Context& context, Rect area, const Time& time);
    float draw_lanes(ui::Context& context, Rect area, const Time& time, const std::vector<std::size_t>& lanes,
                     std::size_t rows, float top);
    void draw_lane(ui::Context& context, const Time& time, std::size_t tensor, Rect line);
    void draw_words(ui::Context& context, const Time& time, std::size_t tensor, Rect line);
    void draw_steps(ui::Context& context, const Time& time, float left, float y);
    void take_hand(ui::Context& context, Rect area, const Time& time, const std::vector<std::size_t>& lanes,
                   Rect rows);
    // view_run_panel.cpp
    void draw_under(ui::Context& context, float width);  // this run under other recipes
    // view_run_tables.cpp
    float draw_findings(ui::Context& context, Rect area);
    FindingColumns finding_columns(const ui::Context& context, Rect area) const;
    float draw_finding_rows(ui::Context& context, const std::vector<const RunFinding*>& findings,
                            const FindingColumns& at, Rect area);
    void draw_finding(ui::Context& context, const RunFinding& finding, const FindingColumns& at, Rect line,
                      bool chosen);
    void draw_histories(ui::Context& context, Rect area);
    void draw_binades(ui::Context& context, Rect area);

    WorkbenchLab& lab_;
    ui::PlotState loss_, binades_;
    int part_ = 0;                               // what is below the lanes where not all has room
    int half_ = 0;                               // on a narrow stage: histories or the step
    float scrolled_ = 0;                         // of the lanes, px
    bool to_lane_ = false, to_finding_ = false;  // scrolls to the selected tensor
};

}  // namespace fp8lab::workbench
