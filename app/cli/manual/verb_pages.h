// The reference of the command line: a page per verb, from the verbs' own tables of options.
#pragma once

#include "core/lesson/manual/manual.h"

namespace fp8lab::cli {

// The part "verbs": "verbs/train" has the description of `train` and its options with what they mean.
ManualPart verbs_part();

}  // namespace fp8lab::cli
