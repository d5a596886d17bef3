// Ranks of one process, with their buffers in main memory: the virtual ranks of the CPU's trainer, and what tests stand on.
#pragma once

#include <memory>

#include "core/ranks/collective.h"

namespace fp8lab {

// It has every sum of rank_sums(). Where threads share the ranks, a call waits until all ranks are named, and the last
// caller computes; so no result depends on who comes first. A call that waits longer than `timeout` throws
// Error{failed} with the ranks that are missing, in every thread.
std::unique_ptr<Collective> make_local_collective(
    int ranks, std::chrono::milliseconds timeout = std::chrono::minutes(1));

}  // namespace fp8lab
