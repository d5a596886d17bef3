// Undo, and Reset: what a lab was before, so that nothing is lost.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "app/shell/labs.h"

namespace fp8lab {

class Past {
  public:
    // What an action may lose beside the fields.
    struct Lost {
        nlohmann::json state;
        std::string record;  // of a finished training
        std::optional<Scene> scene;
        ExercisesTab::Aside attempt;
    };

    Past(Common& common, Labs& labs, ExercisesTab& exercises);

    Lost what_is(Labs::Entry& entry);
    // Ctrl Z brings it back, whatever the action that comes now loses of it.
    void set_aside(Labs::Entry& entry, Lost lost);
    void reset(Labs::Entry& entry);
    // The control with the ring when the frame began; without one all of the panel.
    void reset_control(Labs::Entry& entry);
    void undo(Labs::Entry& entry) { travel(entry, entry.undo.undo()); }
    void redo(Labs::Entry& entry) { travel(entry, entry.undo.redo()); }

    void begin_frame();
    void note(Labs::Entry& entry);  // at the end of a frame

  private:
    void travel(Labs::Entry& entry, const nlohmann::json* state);  // null: nowhere to go
    void bring_back(Labs::Entry& entry, const Lost& lost);

    Common& common_;
    ExercisesTab& exercises_;
    bool apart_ = false;   // a button was pressed since the last note(), or Reset: no burst of keys
    std::string focused_;  // the control with the ring
};

// Whether a mouse button is held: nothing is noted while one drags.
bool any_button_down();

}  // namespace fp8lab
