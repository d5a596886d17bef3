// Undo of one lab: its states at rest, from Lab::state(). Every change of fields is a step: sliders, handles,
// files, scenes. What loses more than fields (Reset all, Do it again: an attempt, a finished training, what a
// scene locks) says so with with_next(), and that comes back too.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fp8lab {

class UndoHistory {
  public:
    static constexpr std::size_t kSteps = 200;

    // Call it when the lab is at rest and no mouse button is down, so that a drag is one step. by_keys: the
    // mouse was not pressed since the last note(); then changes of one field within kBurst_s are one step.
    void note(const nlohmann::json& state, double now_s, bool by_keys);

    // Call it before what loses more than fields: the next note() is then a step, also where the state is the
    // same. `swap` is called each time that undo or redo goes over this step. It brings back what was lost, the
    // state included, and remembers what it replaces by that.
    using Swap = std::function<void()>;
    void with_next(Swap swap) { swap_ = std::move(swap); }

    // The state to restore; null: there is none. The next note() replaces that state by what the lab turned
    // it into. Where the step has a Swap it was called, and the result is the state that it brought back.
    const nlohmann::json* undo();
    const nlohmann::json* redo();
    // undo() would call one.
    bool swaps() const { return swap_ != nullptr || (at_ > 0 && steps_[at_].swap != nullptr); }

    std::size_t undoable() const { return at_; }
    std::size_t redoable() const { return steps_.empty() ? 0 : steps_.size() - 1 - at_; }

  private:
    static constexpr double kBurst_s = 1.0;

    struct Step {
        nlohmann::json state;
        Swap swap = {};  // of the way from the step before to this one; empty: the state is all
    };
    std::vector<Step> steps_;
    std::size_t at_ = 0;        // steps_[at_]: the present one
    Swap swap_;                 // of the next step
    bool went_ = false;         // by undo or redo, since the last note
    std::string burst_;         // the one field that the last step changed; empty: none, or several
    double last_change_s_ = 0;  // of that field
};

}  // namespace fp8lab
