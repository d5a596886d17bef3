// The view of a lab: draws the model's result and edits its fields; it computes nothing. The shell does the
// layout and passes rectangles in physical px.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "labs/lab.h"
#include "labs/ui/context.h"
#include "labs/ui/plot/plot.h"

namespace fp8lab {

// A key of this lab, for the list of keys and the palette; key() executes it.
struct ViewKey {
    std::string_view keys, effect;  // "0 to 7", "flips that bit"
    ui::Key first, last;            // one key or a run of them
};

class LabView {
  public:
    virtual ~LabView() = default;
    virtual std::string_view question() const { return {}; }  // instead of LabInfo's; empty: that one
    virtual void stage(ui::Context&, Rect area) = 0;          // under title and question
    virtual void explore(ui::Context&, float width) = 0;      // the panel's Explore tab, at the ImGui cursor
    // Status line, left side: "seed" "4". Numbers in mono.
    virtual std::vector<std::pair<std::string, std::string>> status() const = 0;
    // Draws one of the lab's figures in presentation, with its handles.
    virtual void present(ui::Context& context, const Figure& figure, ui::PlotState& state, Rect area) {
        ui::plot(context, "present.figure", figure, state, area, {.crosshair = false, .title_height = 20});
    }
    // The end of the Learn tab, at the ImGui cursor: what the lesson comes to with the lab's present numbers.
    virtual void lesson_end(ui::Context&) {}
    // A key that the shell does not use; returns true if the lab uses it.
    virtual bool key(ui::Context&, ui::Key key) {
        (void)key;
        return false;
    }
    // The same of a typed character, for signs that are on another key of each keyboard.
    virtual bool character(ui::Context&, unsigned typed) {
        (void)typed;
        return false;
    }
    virtual std::span<const ViewKey> keys() const { return {}; }
};

std::unique_ptr<LabView> make_view(Lab& lab);  // throws Error{failed} where labs/list.h does not have it

}  // namespace fp8lab
