// Checks of the codec on this machine: golden data, round trips, vector against scalar. `validate` runs them, and
// the window shows their result.
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
    // Throws input_error where the golden data are missing, Interrupted where a signal ends a long check.
    std::function<SelfCheckOutcome()> run;
};

// The quick checks take seconds together. `full` adds passes over all 2^32 float32 inputs: minutes on all cores.
std::vector<SelfCheck> codec_self_checks(bool full);

}  // namespace fp8lab
