// The row of a lab that trains: run and pause, one step, reset, the number of the step, and a bar that shows how far the
// training is. A step is typed, or pressed on the bar: the training runs to it and pauses. Knows no lab: it says what was
// asked for as an action, and the lab does it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "labs/ui/input.h"
#include "labs/ui/widgets.h"

namespace fp8lab::ui {

struct TransportState {
    int step = 0, steps = 1;     // done, of all
    bool running = false;        // also while its trainer is being built
    bool stepping = false;       // running, for single steps
    bool ended = false;          // at its last step, or failed
    std::string preparing = {};  // what a start waits for: it stands in place of the bar
    std::string time = {};       // "about 40 s left", right of the bar where there is room
    std::string time_help = {};  // its tooltip: which steps it was computed from
};

class Transport {
  public:
    // "run", "pause", "step", "run to <step>", "restart".
    using Act = std::function<void(const std::string& action)>;

    // name: before the names of the probes: "train" for "train.run".
    explicit Transport(std::string name) : name_(std::move(name)) {}
    // Draws the row in `area`, 32 px high (logical).
    void draw(Context&, Rect area, const TransportState& state, const Act& act);
    // Space: run or pause. Full stop: one step; pressed while a step is under way, one more. False: another key.
    bool key(Key key, const TransportState& state, const Act& act);

  private:
    void buttons(Context&, Rect area, const TransportState& state, const Act& act);
    float number(Context&, Rect area, const TransportState& state, const Act& act);  // returns where it ends
    void bar(Context&, Rect area, const TransportState& state, const Act& act);
    void run_to(int step, const TransportState& state, const Act& act);
    void ask(const std::string& action, const Act& act);
    // Trains until its end or a pause.
    bool goes(const TransportState& state) const { return state.running && !state.stepping && !pausing_; }
    std::string probe(std::string_view part) const { return name_ + "." + std::string(part); }

    std::string name_;
    bool pausing_ = false;      // requested and not reached yet; the worker does not report when it rests
    int drag_ = -1;             // the step under the mouse that holds the knob
    int goal_ = 0;              // of the last "run to"; 0: none
    std::string refused_ = {};  // why a typed step cannot be run to
    double refused_until_ = 0;  // ImGui's time
};

}  // namespace fp8lab::ui
