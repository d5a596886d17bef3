// The view of a table's rows: the Explore tab of every lab on TableLab. A lab's own view derives from TableView, draws
// its stage, and adds what is its own.
#pragma once

#include <string>

#include "labs/table/table_lab.h"
#include "labs/view.h"

namespace fp8lab::table {

// What a lab adds to the rows; each function may be empty.
struct Explore {
    std::string_view lab;    // before the names of its controls
    std::string more_words;  // after "More: "
    std::function<bool(std::string_view experiment)> shows;
    // Draws the control of a row itself, and returns true; false: the default one is drawn. Not asked for a field that an
    // exercise hides or locks; asked for one without an effect.
    std::function<bool(const Row& row, const Field& default_field)> own;
};

// The switch of the experiments, where there are several, the rows of the one shown, and its second tier behind "More".
void draw_rows(ui::Context&, std::vector<Row> rows, const std::vector<Field>& defaults,
               const Explore& explore, bool& more_open);

template <class M>
class TableView : public LabView {
  public:
    explicit TableView(TableLab<M>& lab) : lab_(lab) {}
    void explore(ui::Context& context, float width) final {
        draw_above(context, width);
        draw_rows(context, lab_.rows(), lab_.defaults(),
                  {M::kInfo.id, more_words(), [this](std::string_view id) { return lab_.shows(id); },
                   [&](const Row& row, const Field& original) { return draw_own(context, row, original); }},
                  more_open_);
        draw_below(context, width);
    }

  protected:
    virtual std::string more_words() const = 0;
    virtual bool draw_own(ui::Context&, const Row&, const Field& default_field) {
        (void)default_field;
        return false;
    }
    virtual void draw_above(ui::Context&, float width) { (void)width; }  // what the rows are about
    virtual void draw_below(ui::Context&, float width) { (void)width; }  // what the rows come to
    void set(const std::string& assignment) { set_field(lab_.fields(), assignment); }

    TableLab<M>& lab_;

  private:
    bool more_open_ = false;
};

}  // namespace fp8lab::table
