#include "core/inference/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/stats/tensor_stats.h"

namespace fp8lab {

void check_percentile(double percentile, const std::string& where) {
    if (!(percentile > 0 && percentile <= 100))
        throw usage_error(where, fmt::format("must be above 0 and at most 100; got {}", percentile));
}

float magnitude_percentile(std::vector<float> values, double percentile) {
    if (values.empty()) return 0;
    for (float& v : values) v = std::fabs(v);
    const double place = percentile / 100 * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::ptrdiff_t>(std::floor(place));
    const auto at = values.begin() + below;
    std::nth_element(values.begin(), at, values.end());
    if (at + 1 == values.end()) return *at;
    const auto low = static_cast<double>(*at),
               high = static_cast<double>(*std::min_element(at + 1, values.end()));
    return static_cast<float>(low + (place - std::floor(place)) * (high - low));
}

float calibrated_amax(std::vector<float> input, double percentile, const std::string& layer) {
    const float largest = amax(input);
    if (percentile == 100) return largest;
    const float out = magnitude_percentile(std::move(input), percentile);
    if (out == 0 && largest > 0)
        throw usage_error("percentile",
                          fmt::format("{} of the input of layer {} is 0, and no scale follows from "
                                      "that: take a larger one",
                                      percentile, layer));
    return out;
}

std::vector<float> calibrated_amaxes(const TrainedMlp& network, const Matrix<float>& x,
                                     const Calibration& calibration) {
    check_percentile(calibration.percentile);
    constexpr std::size_t kBatch = 32;
    const std::size_t rows = std::min(calibration.batches * kBatch, x.rows);
    Matrix<float> part(rows, x.cols);
    std::copy_n(x.values.begin(), part.values.size(), part.values.begin());
    std::vector<float> out;
    for (Matrix<float>& input : layer_inputs(network, part))
        out.push_back(
            calibrated_amax(std::move(input.values), calibration.percentile, std::to_string(out.size() + 1)));
    return out;
}

}  // namespace fp8lab
