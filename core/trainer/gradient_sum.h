// The sums of the gradients of a step's micro-batches: of weights that a GEMM reads in the format of
// Accumulation::format, of biases, norms and embeddings in FP32.
#pragma once

#include <span>
#include <vector>

#include "core/nn/train_spec.h"
#include "core/ranks/sums.h"

namespace fp8lab {

// After each addition the sum is rounded to nearest into the format. BF16 overflows to Inf. Sums in 8 bits saturate and have
// one scale for each parameter and step: max / (micro-batches * amax of the first gradient), 1 where that is 0 or not
// finite.
class GradientSum {
  public:
    // rounded: of each parameter, whether its sum is in that format.
    GradientSum(const Accumulation& accumulate, std::vector<bool> rounded);

    // The first of a step replaces what was there.
    void add(std::span<const std::span<float>> gradients, bool first);
    // Writes the sums, divided by the number of micro-batches, to `gradients`.
    void mean(std::span<const std::span<float>> gradients) const;
    // ||sum - exact|| / ||exact|| over those in that format, in per cent; exact: the same gradients added in float64. NaN where
    // that is 0.
    double error_pct() const { return distance().error_pct(); }
    Distance distance() const;

  private:
    struct Sum {
        std::vector<float> values;
        std::vector<double> exact;
        float scale = 1;
    };
    int micro_batches_;
    const FormatInfo* format_;
    std::vector<bool> rounded_;
    std::vector<Sum> sums_;  // one per parameter
};

}  // namespace fp8lab
