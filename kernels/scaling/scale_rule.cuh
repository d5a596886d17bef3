// numerics.md 3.2, step 4, as core/scaling/delayed.cpp's scale_from_amax().
#pragma once

#include <cfloat>

namespace fp8lab::cuda {

__device__ inline float scale_of(float amax, float max_finite, int margin, float previous, bool pow2) {
    if (!(amax > 0) || isinf(amax)) return previous;
    // The quotient is Inf for a tiny amax.
    const float scale = fminf(ldexpf(max_finite, -margin) / amax, FLT_MAX);
    return pow2 ? ldexpf(1.0F, ilogbf(scale)) : scale;
}

}  // namespace fp8lab::cuda
