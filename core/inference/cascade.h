// A cascade: every row runs in a cheap format; rows whose two best classes are close run again in a better one.
#pragma once

#include <vector>

#include "core/inference/score.h"

namespace fp8lab {

// FP4 at twice FP8's rate: the ratio of NVIDIA's data sheets for Blackwell. Nothing here measures it.
inline constexpr double kLowCost = 0.5;

struct Cascade {
    double repeated_pct = 0;
    double cost = 0;  // relative to all rows in the better format: low_cost + repeated share
    double accuracy_pct = 0, accuracy_low_pct = 0,
           accuracy_high_pct = 0;  // NaN: the right answers are not known
    double divergence = 0;
};

// The outputs of both formats for the same rows; a row is repeated where p1 - p2 < tau in the low format.
struct CascadeRun {
    Matrix<float> low, high;
    std::vector<double> margins;  // of `low`
};
CascadeRun cascade_run(Matrix<float> low, Matrix<float> high);
// Throws usage_error for a network that does not classify.
Cascade cascade_of(const Reference& reference, const CascadeRun& run, double tau, double low_cost = kLowCost);

}  // namespace fp8lab
