#include "core/run/modes.h"

namespace fp8lab {

std::span<const FailureMode> failure_modes() {
    static constexpr FailureMode kModes[] = {{"1", "Gradients below the window"},
                                             {"2", "Overflow turns into NaN"},
                                             {"3", "Updates lost: no master weights"},
                                             {"4", "A spike kept in a long history"},
                                             {"5", "Learning rate too high"},
                                             {"6", "Infinite scale of a zero tensor"},
                                             {"7", "Too few mantissa bits"},
                                             {"8", "Accumulator too narrow"},
                                             {"9", "Margin too large"},
                                             {"10", "Nothing: this is what FP8 costs"}};
    return kModes;
}

}  // namespace fp8lab
