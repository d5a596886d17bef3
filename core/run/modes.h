// The modes of failure of FP8 training, by the number that the run doctor (findings.h) and the clinic (L16) give them.
#pragma once

#include <span>
#include <string_view>

namespace fp8lab {

struct FailureMode {
    std::string_view id;  // "1" to "10"; the last one is a healthy run
    std::string_view words;
};
std::span<const FailureMode> failure_modes();

}  // namespace fp8lab
