#include "core/stats/tensor_stats.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace fp8lab {

CastStats& CastStats::operator+=(const CastStats& other) {
    n += other.n;
    amax = std::max(amax, other.amax);
    underflow += other.underflow;
    overflow += other.overflow;
    nonfinite += other.nonfinite;
    signal += other.signal;
    noise += other.noise;
    mass += other.mass;
    return *this;
}

double CastStats::sqnr_db() const {
    if (signal == 0) return std::numeric_limits<double>::quiet_NaN();
    return 10 * std::log10(signal / noise);  // noise 0: +Inf
}

void Log2Histogram::add(std::span<const float> values) {
    constexpr std::uint32_t kMagnitude = 0x7FFF'FFFF, kInfinity = 0x7F80'0000;
    for (const float value : values) {
        const std::uint32_t bits = std::bit_cast<std::uint32_t>(value) & kMagnitude;
        if (bits == 0) {
            ++zeros;
        } else if (bits >= kInfinity) {
            ++nonfinite;
        } else {
            // A subnormal float32 is mantissa * 2^-149: its exponent is where its highest bit stands.
            const int field = static_cast<int>(bits >> 23);
            const int exponent = field > 0 ? field - 127 : static_cast<int>(std::bit_width(bits)) - 150;
            const int bin = exponent - kLowest;
            if (bin < 0)
                ++below;
            else if (bin >= kBins)
                ++above;
            else
                ++counts[static_cast<std::size_t>(bin)];
        }
    }
    n += static_cast<std::int64_t>(values.size());
}

}  // namespace fp8lab
