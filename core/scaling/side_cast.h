// How the two GEMMs that read a tensor cast it: the same way, unless Recipe::inputs say other things of them.
#pragma once

#include "core/scaling/quantizer.h"

namespace fp8lab {

struct SideCast {
    CastPlan plan;
    bool delayed = false;  // the scale comes from the history
    bool rotated = false;  // along the batch, before the cast for wgrad
    bool operator==(const SideCast&) const = default;
};
// Of the GEMM whose K is `along`: gemm_of(tensor, along).
SideCast side_cast(const Recipe& recipe, TensorClass tensor, Along along);
// Whether one of its casts has a scale from the history.
bool has_delayed_scale(const Recipe& recipe);
// Whether the two are different casts: each has a scale, a history and a copy of its own then.
bool is_split(const Recipe& recipe, TensorClass tensor);

}  // namespace fp8lab
