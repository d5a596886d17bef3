// Logs made of values, counted here independently of the program.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/run/run_log.h"

namespace fp8lab {

// What a hook would log of these values in this step.
inline void log_values(TensorSeries& series, int step, const std::vector<float>& values) {
    TensorPoint point{.step = step};
    BinadeCounters counters;
    counters.n = values.size();
    std::map<int, std::uint64_t> binades;
    point.amax = 0;
    for (const float value : values) {
        const float size = std::fabs(value);
        if (std::isnan(value)) {
            ++counters.nan;
        } else if (std::isinf(value)) {
            ++counters.inf;
        } else if (value == 0) {
            ++counters.zero;
        } else {
            int exponent = 0;
            std::frexp(size, &exponent);  // size is in [2^(exponent - 1), 2^exponent)
            ++binades[exponent - 1];
            point.amax = std::max(point.amax, size);
            point.amin = std::isnan(point.amin) ? size : std::min(point.amin, size);
        }
    }
    if (!binades.empty()) {
        counters.top = binades.rbegin()->first;
        for (const auto& [binade, count] : binades) {
            const auto k = static_cast<std::size_t>(std::min(counters.top - binade, 63));
            counters.bins.resize(std::max(counters.bins.size(), k + 1));
            counters.bins[k] += count;
        }
    }
    point.nonfinite = counters.nan + counters.inf > 0;
    std::vector<std::uint8_t> packed;
    counters.pack(packed);
    series.add(point, packed);
}

// A series of amaxes alone.
inline TensorSeries amaxes(const std::string& name, const std::vector<float>& values) {
    TensorSeries series(name);
    for (std::size_t i = 0; i < values.size(); ++i)
        series.add({.step = static_cast<std::int32_t>(i), .amax = values[i]});
    return series;
}

}  // namespace fp8lab
