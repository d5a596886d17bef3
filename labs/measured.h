// What most judges end with.
#pragma once

#include "core/lesson/exercise.h"

namespace fp8lab {

// With the value that the prediction is compared with, once all conditions are met.
inline Verdict measured(Verdict verdict, double value) {
    if (verdict.passed()) verdict.measured = {value};
    return verdict;
}

}  // namespace fp8lab
