// Calibrated ("static") scales of layer inputs follow from rows that were seen before: from their amax, or from a
// percentile of their magnitudes, so that a few large values saturate and the others have smaller steps (Wu et al.,
// "Integer Quantization for Deep Learning Inference", arXiv 2004.09602, section 5.1).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/inference/network.h"

namespace fp8lab {

struct Calibration {
    std::size_t batches = 4;  // of 32 rows, or of 32 sequences
    double percentile = 100;  // of |x| over all of them, per layer; 100: the amax
    std::function<void(std::size_t batches)> told =
        {};  // hears how many are done, where they come one by one
};
// Throws usage_error unless 0 < percentile <= 100.
void check_percentile(double percentile, const std::string& where = "percentile");

// numpy.percentile(abs(values), p): linear between the two magnitudes around place p / 100 (n - 1) of the sorted ones,
// here in float64 and rounded to float32. 0 of no values.
float magnitude_percentile(std::vector<float> values, double percentile);

// One per layer: the percentile of |input| over the first `batches` batches of x, in FP32. 0: the input is 0 in all of
// them, and then its scale is dynamic. Throws usage_error: check_percentile(), or the percentile of an input that is not
// 0 everywhere is 0.
std::vector<float> calibrated_amaxes(const TrainedMlp& network, const Matrix<float>& x,
                                     const Calibration& calibration);
// The same for the input of one layer. `layer`: its name.
float calibrated_amax(std::vector<float> input, double percentile, const std::string& layer);

}  // namespace fp8lab
