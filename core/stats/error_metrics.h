// The error of a cast in the metrics that the field uses (numerics.md 5.1). None is enough alone: a large
// SQNR can go with many elements that became 0.
#pragma once

#include <cstdint>
#include <span>

#include "core/stats/tensor_stats.h"

namespace fp8lab {

// What CastStats does not have because a training step does not need it. Sums over finite x.
struct ErrorSums {
    std::int64_t nan = 0, inf = 0;   // of x
    std::int64_t nonzero = 0;        // finite x that are not 0
    std::int64_t at_max = 0;         // finite x whose code is the largest finite one of its sign
    double relative = 0, worst = 0;  // sum and largest of |x - q| / |x| over those that are not 0
    double dot = 0, q_squared = 0;   // sum of x q, of q^2
    float amin_nonzero = 0;          // smallest |x| above 0; 0 where there is none
    ErrorSums& operator+=(const ErrorSums& other);
};

// x was cast to q. `tops`: the dequantised value of the format's largest code, one for all of x or one per
// element.
ErrorSums measure_errors(std::span<const float> x, std::span<const float> q, std::span<const float> tops);

// The metrics are ratios, except where the name says percent. NaN where a metric is undefined: SQNR of zeros, every
// metric of a tensor of infinities.
struct ErrorMetrics {
    std::int64_t n = 0, nan = 0, inf = 0;
    double sqnr_db = 0;   // 20 log10(|x| / |x - q|); +Inf when nothing was lost
    double rel_l2 = 0;    // |x - q| / |x|
    double mse = 0;       // mean of (x - q)^2
    double mean_rel = 0;  // mean of |x - q| / |x| over x that are not 0: an element that becomes 0 counts 1
    double max_rel = 0;   // the largest of these
    double cosine = 0;    // x.q / (|x| |q|)
    double underflow_pct = 0, overflow_pct = 0, max_code_pct = 0;
    double lost_l1_pct = 0, lost_energy_pct = 0;  // the shares of |x| and x^2 that underflow removed
    double amax = 0, amin_nonzero = 0;
    double dynamic_range_log2 = 0;  // log2(amax) - log2(amin_nonzero)
};
ErrorMetrics error_metrics(const CastStats& stats, const ErrorSums& sums);

}  // namespace fp8lab
