// L16 with some of its fields set, in the order of the diseases.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "labs/clinic/model.h"

namespace fp8lab::clinic {

struct Made {
    ClinicLab lab;
    Made(std::initializer_list<std::string> assignments) {
        set_field(lab.fields(), "deal=0");  // in the order of the diseases
        set(assignments);
    }
    void set(std::initializer_list<std::string> assignments) {
        for (const std::string& assignment : assignments) set_field(lab.fields(), assignment);
        lab.update();
    }
    void act(std::string_view action) {
        lab.act(action);
        lab.update();
    }
    const Metric& metric(std::string_view name) {
        metrics = lab.metrics();
        const auto it = std::ranges::find(metrics, name, &Metric::name);
        REQUIRE_MESSAGE(it != metrics.end(), name);
        return *it;
    }
    double operator()(std::string_view name) { return metric(name).value; }
    std::string word(std::string_view name) { return metric(name).text; }
    std::vector<Metric> metrics;
};

}  // namespace fp8lab::clinic
