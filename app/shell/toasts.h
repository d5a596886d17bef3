// What the window tells, one message at a time: at the bottom of the panel and over it (look.md 5), so that it moves
// nothing. A message goes by itself, also when nobody touches the mouse; a fault stays until it is closed. Its card
// is a window of its own: no click on it reaches what is under it.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "labs/ui/context.h"

namespace fp8lab {

struct Toast {
    std::string title, line;
    bool stays = false;  // until it is closed, also when another lab is opened
    bool undo = false;   // offers to take back what it tells of
};

class Toasts {
  public:
    explicit Toasts(ui::Context& context) : context_(context) {}

    void say(Toast toast);  // at once; a fault that is on show comes back after it
    void warn(std::string title, std::string line);
    void let_go();  // closes it, unless it stays
    // What was told can no longer be undone.
    void take_undo() { shown_.undo = false; }
    // What was told was undone by a key: nothing is left to offer.
    void undone() {
        if (shown_.undo) shown_ = {};
    }

    // Null: there is none. Brings up the next fault where nothing else is on show.
    const Toast* shown();
    // Draws it at the bottom of `room`, in front of the window that was drawn last. True: Undo was pressed.
    bool draw(Rect room);
    // Call it between frames, also when there is no input. Returns in how many seconds it wants to be called at
    // the latest; infinity: it does not. Asks for a frame where the message has gone.
    double rest(double now_s);

  private:
    std::vector<std::string_view> lines(float width) const;
    bool draw_card(Rect card);

    ui::Context& context_;
    Toast shown_;
    double until_s_ = -1;         // in the time of rest(); below 0: it was not called since this message came
    std::deque<Toast> warnings_;  // not shown yet
};

}  // namespace fp8lab
