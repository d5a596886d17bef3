// An exercise on a lab, without a window: what the panel, the tests and `check` share.
#pragma once

#include <span>
#include <string_view>

#include "labs/lab.h"

namespace fp8lab {

State observe(Lab& lab);  // every field and metric, as it stands

// The lab at the exercise's start. Throws usage_error where Exercise::start does not fit the lab.
void begin_exercise(Lab& lab, const Exercise& exercise);

// The events of one step, then update() until the lab rests. An answer changes nothing. Throws usage_error
// where the lab has no such field, value or action.
void apply(Lab& lab, std::span<const Event> events);

// From the exercise's start through all events, each a step of its own.
Trail replay(Lab& lab, const Exercise& exercise, std::span<const Event> events);

struct ExerciseEntry {
    const LabEntry* lab;
    const Exercise* exercise;  // lives as long as the program
};
std::vector<ExerciseEntry> all_exercises();

}  // namespace fp8lab
