// The first 40 seconds: four steps in the real L1, each done by the learner and not shown. Nothing moves by
// itself, nothing is blocked, and all of it can be done by keyboard.
#pragma once

#include <string>

#include "labs/lab.h"
#include "labs/ui/context.h"

namespace fp8lab {

class Tour {
  public:
    // The events of this frame that its steps wait for.
    struct Seen {
        Lab* lab = nullptr;    // null: home
        int helps = 0;         // how often F1 told of something and was left
        bool reading = false;  // the panel shows the lesson
        bool free = true;      // no sheet, list or help is open: Escape is the tour's
    };

    static constexpr std::string_view kLab = "bits";

    bool on() const { return step_ < kSteps; }
    void start(ui::Context& context, const Seen& seen);
    void stop() { step_ = kSteps; }
    // Draws the card and the ring around what the step is about. True when it ended in this frame, by its
    // last step or by the learner; completed() says which.
    bool draw(ui::Context& context, const Seen& seen);
    bool completed() const { return completed_; }

  private:
    static constexpr std::size_t kSteps = 4;
    void enter(ui::Context& context, std::size_t step, const Seen& seen);
    bool done(const Seen& seen) const;
    bool draw_card(ui::Context& context, Rect target);

    std::size_t step_ = kSteps;
    std::string before_;  // what the step changes, as it was
    int helps_ = 0;
    bool completed_ = false;
};

}  // namespace fp8lab
