// Undo of one lab: its states at rest, from Lab::state(). Every change of fields is a step: sliders, handles,
// Reset all, scenes. The result of a training is not part of the state and is not undone.
#pragma once

#include <cstddef>
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

    // The state to restore; null: there is none. The next note() replaces that state by what the lab turned
    // it into.
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
