// A finished training as its series: what evidence keeps of L8, and what it is judged from
// again.
#pragma once

#include <string>
#include <string_view>

#include "core/nn/trainer.h"
#include "labs/live/history.h"

namespace fp8lab::live {

// JSON: of each arm the recipe, the loss of every step and, of each tensor that it casts, the underflow,
// the steps in which something was saturated and, of each that lost anything, the lost mass.
std::string record_text(const History& history, const TrainSpec& spec);

// The series as a trainer gives them, without amax, scales and times. Older records have no
// lost mass: it is NaN where something became 0. Throws input_error for what record_text() did not write, or
// where the arms or the number of steps are not the spec's.
Snapshot parse_record(std::string_view text, const TrainSpec& spec);

}  // namespace fp8lab::live
