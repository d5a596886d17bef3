// The view of L16: chips of the cases, loss with strips of scale and underflow, tensor health, gauges; in the panel the
// diagnosis, the treatment and what a rerun comes to.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "labs/clinic/model.h"
#include "labs/table/view.h"

namespace fp8lab::clinic {

class ClinicView final : public table::TableView<Clinic> {
  public:
    using TableView::TableView;
    void stage(ui::Context& context, Rect area) override;
    std::vector<std::pair<std::string, std::string>> status() const override;
    bool key(ui::Context& context, ui::Key key) override;
    std::span<const ViewKey> keys() const override;

  private:
    float draw_chips(ui::Context& context, Rect area);
    void draw_chip(ui::Context& context, std::size_t place, Rect chip);
    void draw_curves(ui::Context& context, Rect area);
    void draw_ends(ui::Context& context, const ui::PlotResult& plot, Rect area);
    // A press or a drag in a plot, and its arrow keys, move the cursor.
    void look_in(ui::Context& context, const char* name, const ui::PlotResult& plot);
    void draw_lower(ui::Context& context, Rect area);
    void draw_histogram(ui::Context& context, Rect area);
    void draw_gauges(ui::Context& context, Rect area);
    void draw_look(ui::Context& context, Rect area);
    // view_health.cpp
    void draw_health(ui::Context& context, Rect area);
    // view_panel.cpp
    std::string more_words() const override { return "second change, draw, deal"; }
    bool draw_own(ui::Context& context, const table::Row& row, const Field& default_field) override;
    void draw_below(ui::Context& context, float width) override;
    void draw_diagnoses(ui::Context& context, const Field& field);
    void draw_treatment(ui::Context& context, const Field& field);
    void draw_outcome(ui::Context& context, const Outcome& outcome);
    void draw_result(ui::Context& context);
    void draw_reveal(ui::Context& context);
    void draw_locked(ui::Context& context, const Field& field);
    void reveal(ui::Context& context);  // at the second call for a case
    bool locked() const;                // the present case is cured
    std::string shown_name() const;     // "patient", "rerun": what the instruments show

    ui::PlotState loss_, scale_, underflow_, histogram_;
    int sealed_again_ = lab_->sealed_again();  // what was told of it
    int diagnoses_drawn_ = -1;                 // in which frame: their keys act while they are in sight
    float result_height_ = 0;                  // of the largest result: what is below stays where it is
    bool to_result_ = false;                   // a rerun was asked for: its result comes into sight
    std::string armed_ = {};                   // the case whose reveal was asked for once
    int part_ = 0;                             // what a low stage shows: curves or tensors
    int narrow_ = 0;  // what a narrow one shows of the tensors: the table or the histogram
};

}  // namespace fp8lab::clinic
