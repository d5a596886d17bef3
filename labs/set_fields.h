// The options `--set` and `--steps` of the verbs that open a lab.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "labs/lab.h"

namespace fp8lab {

// Sets fields, FIELD=VALUE each, and updates the lab. Throws usage_error: an unknown field, a value out of
// range, also where only the other fields forbid it (code=256 of an 8-bit format).
void set_fields(Lab& lab, std::span<const std::string> assignments);

// Throws usage_error for a lab that does not train.
void require_steps(const Lab& lab);

// lab.advance(steps). Where that lasts, stderr says "DOING: step 300 of 2000" (core/files/progress_line.h).
void advance_told(Lab& lab, int steps, std::string_view doing);

}  // namespace fp8lab
