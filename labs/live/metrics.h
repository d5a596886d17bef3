// The list of a lab's metrics while it is made, and the names that such a list can have.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/metric.h"
#include "labs/live/history.h"

namespace fp8lab::live {

struct MetricList {
    std::vector<Metric> all = {};

    void number(std::string name, double value, std::string unit = {}) {
        all.push_back({.name = std::move(name), .value = value, .unit = std::move(unit)});
    }
    void word(std::string name, std::string text) {
        all.push_back({.name = std::move(name), .text = std::move(text)});
    }
    // Where and at which tensor the arm became non-finite; nothing: it did not.
    void stopped(std::string name, const ArmTrack& arm) {
        if (arm.stopped)
            word(std::move(name), fmt::format("step {}, {}", arm.stopped->step, arm.stopped->tensor));
    }
};

// "loss_{}" of "a".
inline void add_names(std::vector<std::string>& out, std::initializer_list<std::string_view> patterns,
                      std::string_view of) {
    for (const std::string_view pattern : patterns) out.push_back(fmt::format(fmt::runtime(pattern), of));
}

}  // namespace fp8lab::live
