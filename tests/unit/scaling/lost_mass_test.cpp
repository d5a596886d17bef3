// Lost mass against a computation in double that shares nothing with core: thresholds and scales from the
// definitions of numerics.md 1 and numerics.md 3.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "core/scaling/quantizer.h"

using namespace fp8lab;

namespace {

using Doubles = std::vector<double>;
constexpr std::size_t kRows = 24, kCols = 160;  // the last block of 128 has 32 columns

// Elements up to half of the smallest value become 0, the tie included: 0 is even.
struct Element {
    double largest, half_of_smallest;
};
constexpr Element kE4m3{448, 0x1p-10}, kE5m2{57344, 0x1p-17}, kE2m1{6, 0.25}, kInt8{127, 0.5};

double amax_of(const Doubles& values, std::size_t from, std::size_t n) {
    double largest = 0;
    for (std::size_t i = from; i < from + n; ++i) largest = std::max(largest, std::fabs(values[i]));
    return largest;
}

// Positive, to the nearest E4M3 number, ties to even.
double to_e4m3(double x) {
    const double gap = std::exp2(std::max(std::floor(std::log2(x)), -6.0) - 3);
    return std::min(std::nearbyint(x / gap) * gap, 448.0);
}

struct Scheme {
    const char* recipe;
    TensorClass tensor;
    Element element;
    std::size_t run;  // neighbours in a row that share a scale; 0: all of the tensor
    // What they are multiplied by, from their amax and the tensor's.
    double (*scale)(double amax, double tensor_amax, const Element& element);
};
double one(double, double, const Element&) { return 1; }
double fills(double amax, double, const Element& element) { return element.largest / amax; }
double power_of_two(double amax, double, const Element& element) {
    return std::exp2(-std::ceil(std::log2(amax / element.largest)));
}
double two_levels(double amax, double tensor_amax, const Element& element) {
    const double tensor_scale = 448 * element.largest / tensor_amax;
    const double code = to_e4m3(amax / element.largest * tensor_scale);
    return code == 0 ? 0 : tensor_scale / code;  // such a block becomes 0
}
constexpr Scheme kSchemes[] = {{"unscaled", TensorClass::x, kE4m3, 0, one},
                               {"unscaled", TensorClass::dy, kE5m2, 0, one},
                               {"current", TensorClass::x, kE4m3, 0, fills},
                               {"current", TensorClass::dy, kE5m2, 0, fills},
                               {"int8", TensorClass::x, kInt8, 0, fills},
                               {"rowwise", TensorClass::x, kE4m3, kCols, fills},
                               {"block128:pow2=0", TensorClass::x, kE4m3, 128, fills},
                               {"mxfp8", TensorClass::x, kE4m3, 32, power_of_two},
                               {"nvfp4", TensorClass::x, kE2m1, 16, two_levels}};

struct Shares {
    double l1_pct, energy_pct;
};
Shares expected(const Scheme& scheme, const Doubles& x) {
    double l1 = 0, energy = 0, lost_l1 = 0, lost_energy = 0;
    const double tensor_amax = amax_of(x, 0, x.size());
    const std::size_t run = scheme.run ? scheme.run : kCols;
    for (std::size_t row = 0; row < kRows; ++row)
        for (std::size_t col = 0; col < kCols; col += run) {
            const std::size_t from = row * kCols + col, n = std::min(run, kCols - col);
            const double amax = scheme.run ? amax_of(x, from, n) : tensor_amax;
            const double scale = scheme.scale(amax, tensor_amax, scheme.element);
            for (std::size_t i = from; i < from + n; ++i) {
                const double size = std::fabs(x[i]);
                const bool lost = size * scale <= scheme.element.half_of_smallest;
                l1 += size, energy += size * size;
                lost_l1 += lost ? size : 0, lost_energy += lost ? size * size : 0;
            }
        }
    return {100 * lost_l1 / l1, 100 * lost_energy / energy};
}

}  // namespace

TEST_CASE("the lost mass is a float64 computation's on ten random tensors, whatever the format and scaling") {
    int lossy = 0;
    for (unsigned seed = 0; seed < 10; ++seed) {
        std::mt19937_64 random(seed);
        std::normal_distribution<double> normal;
        const double sigma = 0.6 + 0.4 * seed, centre = std::exp2(-0.9 * seed);
        Doubles x(kRows * kCols);
        std::vector<float> floats;
        for (double& value : x) {
            const double size = centre * std::exp(sigma * normal(random));
            floats.push_back(static_cast<float>(random() % 2 ? size : -size));
            value = static_cast<double>(floats.back());
        }
        for (const Scheme& scheme : kSchemes) {
            CAPTURE(seed);
            CAPTURE(std::string(scheme.recipe));
            std::vector<float> q(floats.size());
            const QuantizeResult result =
                quantize(cast_plan(parse_recipe(scheme.recipe), scheme.tensor), floats, q,
                         {.rows = kRows, .cols = kCols, .with_errors = true});
            const ErrorMetrics metrics = error_metrics(result.stats, result.errors);
            const Shares wanted = expected(scheme, x);
            CHECK(std::fabs(metrics.lost_l1_pct - wanted.l1_pct) <= 1e-3 * wanted.l1_pct);
            CHECK(std::fabs(metrics.lost_energy_pct - wanted.energy_pct) <= 1e-3 * wanted.energy_pct);
            CHECK((metrics.lost_l1_pct > 0) == (result.stats.underflow > 0));
            lossy += metrics.lost_energy_pct > 0 ? 1 : 0;
        }
    }
    CHECK(lossy >= 40);  // of 90: most casts lose something, so that there is something to compare
}
