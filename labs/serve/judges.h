// Judges of L17 that are not in exercises.cpp: exercises_parts.cpp.
#pragma once

#include "core/lesson/exercise.h"

namespace fp8lab::serve {

Verdict seven_times(const Trail& trail, const Prediction* prediction);       // L17.3
Verdict as_long_as_it_is(const Trail& trail, const Prediction* prediction);  // L17.4
Verdict trained_worse(const Trail& trail, const Prediction* prediction);     // L17.5

}  // namespace fp8lab::serve
