// A trace as Chrome's trace events, which Perfetto opens.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/threads/trace.h"

namespace fp8lab {

// The array "traceEvents": a process for each track, whose spans are complete events ("ph": "X"). Microseconds since the
// first span, in steps of 125 ns, so that ts + dur is exact and a span never ends after the one it lies in.
nlohmann::json trace_events(const Trace& trace);

}  // namespace fp8lab
