// The messages of the window, one at a time, at the bottom of the panel and over it (look.md 5), so that nothing
// moves. A message goes by itself, also when the mouse does not move; a fault stays until it is closed. The card is a
// window of its own, so no click on it reaches what is under it.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <utility>
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
    void say(std::string title, std::string line) { say({std::move(title), std::move(line)}); }
    // The same, of something that Ctrl Z takes back: the toast has a button for it.
    void say_undoable(std::string title, std::string line) {
        say({.title = std::move(title), .line = std::move(line), .undo = true});
    }
    // A fault that is not about what was just done: stays until it is closed.
    void warn(std::string title, std::string line);
    void let_go();  // closes it, unless it stays
    // The change of the message can no longer be undone.
    void take_undo() { shown_.undo = false; }
    // A key has undone the change of the message: the toast offers nothing any more.
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
