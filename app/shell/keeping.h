// What the window shows, against a crash, and another try at what could not be saved.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "app/shell/labs.h"
#include "app/shell/profile/recovery.h"

namespace fp8lab {

class Keeping {
  public:
    Keeping(Common& common, Labs& labs, ExercisesTab& exercises);

    // Called between frames: notes what changed and is kept nowhere else, and saves again what could not be saved.
    // Returns in how many seconds it wants to be called at the latest; infinity: it does not.
    double rest(double now_s);
    // The window was closed. Returns what is lost by that, as a sentence; empty: nothing.
    std::string close();

    // Restores without a question what an earlier page left: a reload is no crash. Nothing where nothing was left.
    void restore_left();

    bool asking() const { return recovery_.asking(); }
    // The question after a crash, over everything else. True: it was answered in this frame.
    bool ask();
    std::vector<std::pair<std::string, std::string>> notices() const;  // status line: what is not kept

  private:
    void journal(Journal& journal);
    void restore(const Journal::Left& left);

    Common& common_;
    Labs& labs_;
    ExercisesTab& exercises_;
    Recovery recovery_;
    double retried_s_ = 0;  // when what could not be saved was tried again
};

}  // namespace fp8lab
