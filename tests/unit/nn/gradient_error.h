// An analytic gradient against differences of the loss.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "core/nn/model.h"

namespace fp8lab::test {

// |numeric - analytic| / |numeric| over one parameter, by central differences with two steps (Richardson); 0 where both are 0.
// `loss()` is the loss of the model that has the parameter, whose gradient is there.
template <class Loss>
double gradient_error(const Parameter<double>& p, const Loss& loss) {
    const std::vector<double> analytic(p.gradient.begin(), p.gradient.end());
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < p.value.size(); ++i) {
        const double kept = p.value[i];
        const auto slope = [&](double h) {
            p.value[i] = kept + h;
            const double above = loss();
            p.value[i] = kept - h;
            const double below = loss();
            p.value[i] = kept;
            return (above - below) / (2 * h);
        };
        constexpr double kStep = 1e-4;
        const double numeric = (4 * slope(kStep / 2) - slope(kStep)) / 3;
        difference += (numeric - analytic[i]) * (numeric - analytic[i]);
        norm += numeric * numeric;
    }
    return difference == 0 ? 0 : std::sqrt(difference / norm);
}

}  // namespace fp8lab::test
