// Undo of one lab: its states at rest, as Lab::state() gives them. Whatever moved the fields is a step:
// sliders, handles, Reset all, a scene. What a training has learned is no state of the lab, and not undone.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fp8lab {

class UndoHistory {
  public:
    static constexpr std::size_t kSteps = 200;

    // Whenever the lab is at rest: no mouse button is down, so that a drag is one step. by_keys: the mouse
    // was not pressed since the last note; then changes of the same one field within kBurst_s are one step.
    void note(const nlohmann::json& state, double now_s, bool by_keys);

    // The state to restore; null: there is none further. What the lab then notes is that state, whatever it
    // makes of it.
    const nlohmann::json* undo();
    const nlohmann::json* redo();

    std::size_t undoable() const { return at_; }
    std::size_t redoable() const { return states_.empty() ? 0 : states_.size() - 1 - at_; }

  private:
    static constexpr double kBurst_s = 1.0;

    std::vector<nlohmann::json> states_;
    std::size_t at_ = 0;        // states_[at_]: the present one
    bool went_ = false;         // by undo or redo, since the last note
    std::string burst_;         // the one field that the last step changed; empty: none, or several
    double last_change_s_ = 0;  // of that field
};

}  // namespace fp8lab
