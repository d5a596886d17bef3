// A lab with some settings, as its numbers.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/fields.h"
#include "core/base/metric.h"

namespace fp8lab::test {

template <class Lab>
class MadeOf {
  public:
    MadeOf(std::initializer_list<std::string> assignments) {
        for (const std::string& assignment : assignments) set_field(lab_.fields(), assignment);
        lab_.update();
        metrics_ = lab_.metrics();
    }
    double operator()(std::string_view name) const {
        const auto it = std::ranges::find(metrics_, name, &Metric::name);
        REQUIRE_MESSAGE(it != metrics_.end(), name);
        return it->value;
    }

  private:
    Lab lab_;
    std::vector<Metric> metrics_;
};

}  // namespace fp8lab::test
