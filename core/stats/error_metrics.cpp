#include "core/stats/error_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fp8lab {

ErrorSums& ErrorSums::operator+=(const ErrorSums& other) {
    nan += other.nan;
    inf += other.inf;
    nonzero += other.nonzero;
    at_max += other.at_max;
    relative += other.relative;
    worst = worst < other.worst || std::isnan(other.worst) ? other.worst : worst;
    dot += other.dot;
    q_squared += other.q_squared;
    if (other.amin_nonzero > 0)
        amin_nonzero = amin_nonzero > 0 ? std::min(amin_nonzero, other.amin_nonzero) : other.amin_nonzero;
    return *this;
}

ErrorSums measure_errors(std::span<const float> x, std::span<const float> q, std::span<const float> tops) {
    ErrorSums sums;
    float smallest = INFINITY;
    const std::size_t stride = tops.size() == 1 ? 0 : 1;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const float size = std::fabs(x[i]);
        if (!std::isfinite(size)) {
            ++(std::isnan(size) ? sums.nan : sums.inf);
            continue;
        }
        const double value = static_cast<double>(x[i]), cast = static_cast<double>(q[i]);
        sums.dot += value * cast;
        sums.q_squared += cast * cast;
        sums.at_max += std::fabs(q[i]) >= tops[stride * i];
        if (size == 0) continue;
        ++sums.nonzero;
        smallest = std::min(smallest, size);
        const double relative = std::fabs(value - cast) / static_cast<double>(size);
        sums.relative += relative;
        if (relative > sums.worst || std::isnan(relative)) sums.worst = relative;  // NaN stays
    }
    if (sums.nonzero > 0) sums.amin_nonzero = smallest;
    return sums;
}

ErrorMetrics error_metrics(const CastStats& stats, const ErrorSums& sums) {
    const auto n = static_cast<double>(stats.n), finite = static_cast<double>(stats.n - sums.nan - sums.inf),
               nonzero = static_cast<double>(sums.nonzero);
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    ErrorMetrics out;
    out.n = stats.n, out.nan = sums.nan, out.inf = sums.inf;
    out.sqnr_db = stats.sqnr_db();
    out.rel_l2 = std::sqrt(stats.noise / stats.signal);
    out.mse = stats.noise / finite;
    out.mean_rel = sums.relative / nonzero;
    out.max_rel = sums.nonzero > 0 ? sums.worst : kNone;
    out.cosine = sums.dot / std::sqrt(stats.signal * sums.q_squared);
    out.underflow_pct = stats.underflow_pct();
    out.overflow_pct = stats.overflow_pct();
    out.lost_l1_pct = stats.lost_l1_pct();
    out.lost_energy_pct = stats.lost_energy_pct();
    out.max_code_pct = stats.n > 0 ? 100 * static_cast<double>(sums.at_max) / n : 0;
    out.amax = static_cast<double>(stats.amax);
    out.amin_nonzero = sums.nonzero > 0 ? static_cast<double>(sums.amin_nonzero) : kNone;
    out.dynamic_range_log2 = std::log2(out.amax) - std::log2(out.amin_nonzero);
    return out;
}

}  // namespace fp8lab
