// F1, then a click or Tab: what a control is and why it matters. While it is on, nothing can be pressed or
// moved.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "labs/course/help.h"
#include "labs/ui/context.h"

namespace fp8lab {

class HelpMode {
  public:
    using Lookup = std::function<std::optional<ControlHelp>(std::string_view probe)>;

    bool on() const { return on_; }
    // On `control`; empty: on the one with the ring, if there is one.
    void start(const ui::Context& context, std::string_view control = {});
    int told() const { return told_; }  // how often it told of something and was left
    void stop();
    // After everything else of the frame, whose probes it points at. `term`: a glossary entry that was asked
    // for.
    void draw(ui::Context& context, const Lookup& lookup, std::string& term);

  private:
    const ControlHelp* of(const std::string& probe, const Lookup& lookup);
    void point(ui::Context& context, const Lookup& lookup);
    void draw_banner(ui::Context& context);
    void draw_card(ui::Context& context, const ControlHelp& help, Rect target, std::string& term);

    bool on_ = false, telling_ = false;
    int told_ = 0;
    std::string shown_;    // probe; empty: none yet
    std::string hovered_;  // under the mouse
    Rect card_;            // of the last frame: clicks on it are its own
    std::map<std::string, std::optional<ControlHelp>> known_;
};

}  // namespace fp8lab
