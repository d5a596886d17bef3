// What the views of labs that train draw alike: the curves of loss and gap, the row of buttons, the panel. A lab's own view
// derives from SessionView, draws its stage, and adds what is its own. Lengths are logical px, rectangles physical.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "labs/live/session.h"
#include "labs/table/view.h"
#include "labs/ui/plot/plot.h"
#include "labs/ui/transport.h"
#include "labs/ui/widgets.h"
#include "labs/view.h"

namespace fp8lab::live {

const Figure* find_figure(const std::vector<Figure>& figures, std::string_view id);  // null: there is none
// A segmented switch in a place of its own on the stage. True when the choice changed.
bool switch_at(ui::Context&, const std::string& name, Rect area, std::span<const std::string> labels,
               int& selected);

class SessionView : public LabView {
  public:
    explicit SessionView(Session& lab);
    bool key(ui::Context&, ui::Key key) override;  // Space: run or pause; full stop: one step
    std::span<const ViewKey> keys() const override;

  protected:
    using Names = std::span<const std::string_view>;

    // Loss above gap, zoomed together: before the first step of the task that was recorded, those of the recorded run,
    // paler. `share` of the height is the gap's, within its bounds; below `low` the loss has no line over its axis, and
    // the words of its subtitle are `low_words`.
    struct Split {
        float share, least, most, between, low;
        std::string_view low_words;
    };
    struct Drawn {
        ui::PlotResult loss, gap;
    };
    // edit_gap: of the gap as it is drawn; the loss above has the margins of the gap as it was. Null: nothing.
    Drawn draw_curves(ui::Context&, Figure loss, Figure gap, Rect area, const Split& split,
                      const std::function<void(Figure& gap)>& edit_gap = {});
    // The lower edge of the stage: the row of buttons.
    void draw_transport(ui::Context&, Rect bar);

    // Rows of the table by name, in this order: `first`, and `more` behind a line with the text "More: <words>". Each is
    // drawn by draw_row() unless a scene withholds it.
    void draw_rows(ui::Context&, Names first, Names more = {}, const std::string& words = {});
    // The control of a row. The default: the one of its type.
    virtual void draw_row(ui::Context&, const table::Row& row, const Field& default_field);
    void draw_backend(ui::Context&, const table::Row& row, float left);
    // A menu of recipes under the label and the colour of its arm. True when another was chosen.
    bool draw_arm(ui::Context&, const table::Row& row, const std::string& label, std::size_t arm);
    // The label, with Transformer Engine's name where `names` is set, and beside it from `left` on a switch between the
    // choices of the row; all but the first are without effect where the row has a `why_not`, which is then the tooltip.
    void draw_choice(ui::Context&, const table::Row& row, float left, bool names, const std::string& help);
    bool draw_switch(ui::Context&, const Field& field, float left, bool names,
                     std::span<const std::string> labels, int& selected, std::size_t enabled);
    // Field "accumulate": of its choices those that divide the batch.
    void draw_micro_batches(ui::Context&, const table::Row& row, const Field& default_field, int batch);
    void draw_waiting(ui::Context&);  // which settings act on Reset

    // The numbers of the run: a large one and what it is; a table with a row an arm; the end of the table.
    void draw_headline(ui::Context&, const std::string& value, const std::string& what, float height);
    struct Head {
        const char *words, *term;
    };
    void draw_heads(ui::Context&, std::span<const Head> heads, std::span<const float> columns);
    static ui::Cell arm_cell(const ArmLook& look);
    static void end_table(ui::Context&, float width);
    // "Copy command" and, beside it, a button `name` for Transformer Engine's code.
    void draw_copy_buttons(ui::Context&, float width, const std::string& name, const char* label,
                           const char* title);
    // Which recording is shown: a menu where there are several.
    void draw_recording_menu(ui::Context&, Rect area, const std::vector<std::string>& names, int& chosen);

    std::string probe(std::string_view part) const;  // "train.run"

    Session& session_;
    ui::PlotState loss_, gap_, histogram_, step_;
    std::string picture_;  // the label of the one chosen last; empty: the first that there is
    int recording_ = 0;    // of those that are shown

  private:
    ui::TransportState transport_state() const;

    bool more_open_ = false;
    ui::Transport transport_;
};

// A series of a run in a cell of a table: on a logarithmic axis of its own, from its least to its greatest value, the run's
// steps from left to right. Nothing where no value is above 0.
void draw_strip(ui::Context&, Rect area, const Envelope& envelope);

}  // namespace fp8lab::live
