// The median of the newest numbers of a series, without sorting them anew at each step.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

namespace fp8lab {

// The middle number, or the mean of both. NaN of nothing.
inline double middle_of(std::span<const float> sorted) {
    if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
    const std::size_t half = sorted.size() / 2;
    if (sorted.size() % 2 == 1) return static_cast<double>(sorted[half]);
    return (static_cast<double>(sorted[half - 1]) + static_cast<double>(sorted[half])) / 2;
}

class RunningMedian {
  public:
    // NaN is not counted, but has its place.
    void add(float value) {
        if (!std::isnan(value)) sorted_.insert(std::ranges::upper_bound(sorted_, value), value);
    }
    void remove(float value) {  // one that was added
        if (!std::isnan(value)) sorted_.erase(std::ranges::lower_bound(sorted_, value));
    }
    double value() const { return middle_of(sorted_); }

  private:
    std::vector<float> sorted_;
};

}  // namespace fp8lab
