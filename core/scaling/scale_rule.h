// The scale of an amax. The CPU and the kernels compile this one function, so it has C's names of functions.
#pragma once

#include <cfloat>
#include <cmath>

#ifdef __CUDACC__
#define FP8LAB_ALSO_IN_KERNELS __host__ __device__
#else
#define FP8LAB_ALSO_IN_KERNELS
#endif

namespace fp8lab {

// numerics.md 3.2, step 4; pow2 rounds the result down to a power of two. fp8_max is max_finite of the
// format. An amax of 0 or not finite keeps the previous scale; with zero_is_inf (ZeroAmax::inf) 0 gives Inf.
FP8LAB_ALSO_IN_KERNELS inline float scale_from_amax(float amax, float fp8_max, int margin,
                                                    float previous_scale, bool pow2 = false,
                                                    bool zero_is_inf = false) {
    if (zero_is_inf && amax == 0) return INFINITY;
    if (!(amax > 0 && amax <= FLT_MAX)) return previous_scale;
    // The quotient is Inf for a tiny amax (below 1.3e-36 in E4M3).
    const float scale = fminf(ldexpf(fp8_max, -margin) / amax, FLT_MAX);
    return pow2 ? ldexpf(1.0F, ilogbf(scale)) : scale;
}

// One step of an exponential moving average, ema = d ema + (1 - d) amax; it begins with the first amax. 0: there is none.
FP8LAB_ALSO_IN_KERNELS inline float ema_with(float ema, float amax, float decay) {
    return amax == 0 ? ema : ema == 0 ? amax : fmaf(decay, ema, (1.0F - decay) * amax);
}

// The average of a history whose newest amax is in slot 0 and the oldest in slot 1, from the oldest to the newest. Older steps
// than the history holds do not count. NaN and Inf stay.
FP8LAB_ALSO_IN_KERNELS inline float ema_of(const float* history, unsigned long length, float decay) {
    float ema = 0;
    for (unsigned long age = length; age > 0; --age)
        ema = ema_with(ema, history[(length - age + 1) % length], decay);
    return ema;
}

}  // namespace fp8lab

#undef FP8LAB_ALSO_IN_KERNELS
