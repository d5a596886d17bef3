// What labs that train share of their row "run, pause, step, how far": the action that says how far, and what the row
// shows besides the step.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "labs/live/pace.h"
#include "labs/live/recorded_run.h"

namespace fp8lab::live {

// The step of the action "run to 300"; none: another action.
std::optional<int> run_to_step(std::string_view action);

// "about 40 s left" and what it was computed from; both empty where nothing is known, or the training is at its end.
struct TimeLeft {
    std::string words = {}, help = {};
};
// `run`: recorded on another machine, or on this one before; null: none. fastest: seconds that a step takes at least,
// because of a limit of the speed.
TimeLeft time_left(int step, int steps, const Pace& pace, const RecordedRun* run, double fastest = 0);

}  // namespace fp8lab::live
