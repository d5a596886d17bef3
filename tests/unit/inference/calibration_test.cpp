// Static scales from percentiles: against numpy, against sorted copies, and what a scale below the amax does.
#include "core/inference/calibration.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/inference/data.h"
#include "core/inference/lowering.h"
#include "core/inference/score.h"
#include "tests/unit/inference/made.h"

using namespace fp8lab;
using namespace fp8lab::test;

namespace {

// numpy.percentile's "linear" once more, from a sorted copy.
double sorted_percentile(std::vector<float> values, double p) {
    for (float& v : values) v = std::fabs(v);
    std::ranges::sort(values);
    const double place = p / 100 * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const auto low = static_cast<double>(values[below]),
               high = static_cast<double>(values[std::min(below + 1, values.size() - 1)]);
    return low + (place - static_cast<double>(below)) * (high - low);
}

}  // namespace

TEST_CASE("the percentile of magnitudes is numpy's") {
    // numpy 2.4: np.percentile(np.abs(x).astype(np.float64), p)
    const std::vector<float> few = {0.5F, -3, 2, 0, -0.25F, 7, -7.5F, 1};
    for (const auto& [p, wanted] : {std::pair{1.0, 0.0175},
                                    {25.0, 0.4375},
                                    {50.0, 1.5},
                                    {60.0, 2.2},
                                    {90.0, 7.15},
                                    {99.0, 7.465},
                                    {99.9, 7.4965},
                                    {100.0, 7.5}})
        CHECK(magnitude_percentile(few, p) == static_cast<float>(wanted));
    std::vector<float> many;
    for (int i = 0; i < 1009; ++i) many.push_back(static_cast<float>((i * 7919 % 1009 - 300) / 77.0));
    for (const auto& [p, wanted] : {std::pair{0.001, 0.00013090909F},
                                    {10.0, 0.65974027F},
                                    {33.3, 2.1818182F},
                                    {50.0, 3.2727273F},
                                    {75.0, 5.922078F},
                                    {90.0, 7.885714F},
                                    {99.0, 9.063896F},
                                    {99.9, 9.181714F},
                                    {99.99, 9.193496F},
                                    {100.0, 9.194805F}})
        CHECK(magnitude_percentile(many, p) == wanted);
    CHECK(magnitude_percentile({-3}, 50) == 3);
    CHECK(magnitude_percentile({}, 50) == 0);
}

TEST_CASE("each layer's percentile is that of its FP32 inputs over the batches, 100 its amax") {
    for (const std::size_t batches : {1U, 3U}) {
        const TrainedMlp n = made_network({20, 33, 12, 4});
        const Matrix<float> x = normal(100, 20, 4);
        Matrix<float> seen(32 * batches, 20);
        std::copy_n(x.values.begin(), seen.values.size(), seen.values.begin());
        const std::vector<Matrix<float>> inputs = layer_inputs(n, seen);
        for (const double p : {60.0, 99.0, 99.9, 100.0}) {
            const std::vector<float> found = calibrated_amaxes(n, x, {batches, p});
            REQUIRE(found.size() == 3);
            for (std::size_t l = 0; l < 3; ++l)
                CHECK(found[l] == static_cast<float>(sorted_percentile(inputs[l].values, p)));
        }
        CHECK(calibrated_amaxes(n, x, {batches}) == calibrated_amaxes(n, x, {batches, 100}));
    }
}

TEST_CASE("a lower percentile never gives a larger scale's amax, and what is above it saturates") {
    const TrainedMlp n = made_network({24, 40, 6});
    const Matrix<float> x = normal(64, 24, 9);
    const LowFormat& int8 = find_low_format("int8", "test");
    std::vector<float> before(2);
    double saturated = 100;
    for (const double p : {70.0, 90.0, 99.0, 99.9, 100.0}) {
        const std::vector<float> amaxes = calibrated_amaxes(n, x, {2, p});
        for (std::size_t l = 0; l < 2; ++l) CHECK(amaxes[l] >= before[l]);
        before = amaxes;
        const Lowered run = run_lowered(n, x, uniform_mix(2, int8), {amaxes, 0}, true);
        const double now = run.layers[0].a.overflow_pct();
        CHECK(now <= saturated);
        CHECK(now <= 100 - p + 1);  // the rows are those of the calibration
        saturated = now;
    }
    CHECK(saturated == 0);
}

TEST_CASE("a percentile of 0 or below, above 100 or of a tensor that is 0 there, is refused in a sentence") {
    const TrainedMlp n = made_network({8, 16, 3});
    const Matrix<float> x = normal(32, 8, 2);
    for (const double p : {0.0, -1.0, 100.001, std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity()})
        CHECK_THROWS_WITH_AS(calibrated_amaxes(n, x, {1, p}), doctest::Contains("above 0 and at most 100"),
                             Error);
    // Half of what relu leaves is 0.
    CHECK_THROWS_WITH_AS(calibrated_amaxes(n, x, {1, 20}), doctest::Contains("of the input of layer 2 is 0"),
                         Error);
    Matrix<float> zeros(32, 8);
    CHECK(calibrated_amaxes(n, zeros, {1, 99}).front() == 0);  // then the scale is dynamic
}
