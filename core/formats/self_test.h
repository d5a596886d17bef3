// Whether the codec is right on this machine: against the golden data, against itself, vector against scalar.
// What `validate` runs; also the answer to "can I trust these numbers here?" in the window.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace fp8lab {

struct SelfCheckOutcome {
    bool passed = false;
    std::string expected, found;  // short texts: a checksum, "0 differences"
};

struct SelfCheck {
    std::string name;
    // May throw input_error: golden data missing. Throws Interrupted where a signal ends a long check.
    std::function<SelfCheckOutcome()> run;
};

// Quick ones take seconds together. `full` adds the passes over all 2^32 float32 inputs: minutes of all
// cores.
std::vector<SelfCheck> codec_self_checks(bool full);

}  // namespace fp8lab
