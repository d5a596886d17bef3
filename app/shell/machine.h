// The text of the badge while no lab sets another: where the numbers come from, and why not from a GPU.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/provenance.h"

namespace fp8lab {

struct Machine {
    Provenance provenance = Provenance::cpu_emulated;
    std::string reason;  // at most three lines of the rail
};

// Does not query the GPU: a window that trains nothing would pay half a second and hundreds of MB.
Machine detect_machine();
std::uint64_t resident_bytes();  // RSS of this process; 0 where the system does not say

double process_age_ms();  // since the system started this process

}  // namespace fp8lab
