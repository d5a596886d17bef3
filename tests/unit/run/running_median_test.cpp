// The running median against numbers that are sorted anew at each step.
#include "core/run/running_median.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace fp8lab;

TEST_CASE(
    "the median of the last 32 numbers is that of sorting them, whatever repeats and with NaN between") {
    std::mt19937 random(3);
    std::vector<float> series;
    for (int i = 0; i < 600; ++i) {
        const auto number = static_cast<float>(random() % 20);
        series.push_back(random() % 7 == 0 ? std::nanf("") : number * number);
    }
    series[300] = std::numeric_limits<float>::infinity();
    constexpr std::size_t kWindow = 32;
    RunningMedian median;
    CHECK(std::isnan(median.value()));
    for (std::size_t i = 0; i < series.size(); ++i) {
        median.add(series[i]);
        if (i >= kWindow) median.remove(series[i - kWindow]);
        std::vector<float> window(
            series.begin() + static_cast<std::ptrdiff_t>(i + 1 - std::min(i + 1, kWindow)),
            series.begin() + static_cast<std::ptrdiff_t>(i + 1));
        std::erase_if(window, [](float value) { return std::isnan(value); });
        std::ranges::sort(window);
        if (window.empty()) {
            CHECK(std::isnan(median.value()));
            continue;
        }
        const float below = window[(window.size() - 1) / 2], above = window[window.size() / 2];
        CHECK(median.value() == (static_cast<double>(below) + static_cast<double>(above)) / 2);
    }
}
