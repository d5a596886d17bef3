// What a test needs to feed input into a window, and to see what came of it.
#pragma once

#include <string>

#include "app/desk/session.h"

namespace fp8lab {

// The rectangles of all controls in px, their words, the axes of plots, the metrics of the lab on the stage, as JSON.
// `frames`: drawn so far; `heard`: of them, when input last came or still waited.
std::string probe_json(Session& session, long frames, long heard);

}  // namespace fp8lab
