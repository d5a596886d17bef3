// The SQNR table of numerics section 5, which was computed independently (numpy): N(0, 1), a million samples.
// Tolerances are the table's spread over its seeds, at least 0.03 dB for the last digit it prints.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/base/rng.h"
#include "core/scaling/quantizer.h"

using namespace fp8lab;

namespace {

constexpr std::size_t kCount = 1'000'000;

// As one row, so that every block but the last is whole.
CastStats stats_of(const char* recipe, std::vector<float> values, TensorClass tensor = TensorClass::x,
                   std::size_t rows = 1) {
    return quantize(cast_plan(parse_recipe(recipe), tensor), values, values,
                    {.rows = rows, .cols = kCount / rows})
        .stats;
}

std::vector<float> normal() {
    std::vector<float> values(kCount);
    Rng(1).fill_normal(values);
    return values;
}

double gaussian_tail(double z) { return std::erfc(z / std::sqrt(2.0)) / 2; }  // P(x > z)

}  // namespace

TEST_CASE("SQNR and underflow of a Gaussian tensor agree with the independent table") {
    struct Row {
        const char* recipe;
        double sqnr_db, tolerance_db, underflow_pct, tolerance_pct;
    };
    const std::vector<float> values = normal();
    for (const Row& row :
         {Row{"bf16", 55.58, 0.03, 0, 0}, Row{"int8", 38.88, 1.0, 1.58, 0.2},
          Row{"current:fwd=e3m4", 37.56, 0.03, 0.20, 0.03}, Row{"current", 31.55, 0.03, 0.0009, 0.001},
          Row{"unscaled", 31.52, 0.03, 0.08, 0.01}, Row{"mxfp8", 31.52, 0.03, 0.0006, 0.001},
          Row{"mxfp8:mxrule=even", 31.18, 0.03, 0.0006, 0.001},
          Row{"mxfp8:mxrule=floor", 30.64, 0.03, 0.0006, 0.001},
          Row{"mxfp8:fwd=e5m2", 25.54, 0.03, 0, 0.0001},
          Row{"mxfp8:fwd=e5m2:mxrule=floor", 25.35, 0.03, 0, 0.0001},
          Row{"current:fwd=e2m3", 30.22, 0.45, 3.3, 0.3}, Row{"mxfp6-e2m3", 30.96, 0.03, 2.3, 0.1},
          Row{"mxfp6-e2m3:mxrule=floor", 30.94, 0.03, 2.3, 0.5}, Row{"mxfp6-e3m2", 25.54, 0.03, 0.30, 0.02},
          Row{"mxfp6-e3m2:mxrule=floor", 25.35, 0.03, 0.28, 0.02}, Row{"nvfp4", 20.43, 0.03, 6.8, 0.1},
          Row{"mxfp4", 18.76, 0.03, 10.7, 0.1}, Row{"mxfp4:mxrule=even", 19.04, 0.03, 9.7, 0.1},
          Row{"mxfp4:mxrule=floor", 18.79, 0.03, 8.8, 0.1}}) {
        CAPTURE(std::string(row.recipe));
        const CastStats stats = stats_of(row.recipe, values);
        CHECK(std::fabs(stats.sqnr_db() - row.sqnr_db) <= row.tolerance_db);
        CHECK(std::fabs(stats.underflow_pct() - row.underflow_pct) <= row.tolerance_pct);
    }
    CHECK(std::fabs(stats_of("rowwise", values, TensorClass::x, 1000).sqnr_db() - 31.56) <= 0.03);
    CHECK(std::fabs(stats_of("block128:pow2=0", values).sqnr_db() - 31.80) <= 0.03);
    CHECK(std::fabs(stats_of("block128", values).sqnr_db() - 31.52) <= 0.03);
    CHECK(std::fabs(stats_of("current", values, TensorClass::dy).sqnr_db() - 25.57) <= 0.03);
}

TEST_CASE("stochastic rounding costs about 3 dB on a single cast") {
    CHECK(std::fabs(stats_of("unscaled:round=stochastic", normal()).sqnr_db() - 28.50) <= 0.05);
}

TEST_CASE("a scale ten binades too small is free, one that is too large clips as a Gaussian is clipped") {
    const std::vector<float> values = normal();
    std::vector<float> out(values.size());
    const CastPlan plan = cast_plan(parse_recipe("delayed"), TensorClass::x);
    QuantizeRequest request{.rows = 1, .cols = kCount};
    const double own = static_cast<double>(quantize(plan, values, out, request).scale);
    const auto stats_at = [&](double factor) {
        request.tensor_scale = static_cast<float>(own * factor);
        return quantize(plan, values, out, request).stats;
    };
    CHECK(std::fabs(stats_at(1).sqnr_db() - stats_at(0x1p-10).sqnr_db()) < 0.1);
    for (const double factor : {2.0, 4.0, 8.0}) {
        CAPTURE(factor);
        const double t = 448 / (own * factor);  // the largest value, in sigmas
        const double density = std::exp(-t * t / 2) / std::sqrt(2 * 3.14159265358979);
        const double clipping = 2 * ((1 + t * t) * gaussian_tail(t) - t * density);
        const double rounding = std::pow(10, -3.155);  // the table's 31.55 dB
        const CastStats stats = stats_at(factor);
        CHECK(std::fabs(stats.sqnr_db() + 10 * std::log10(clipping + rounding)) < 0.1);
        CHECK(std::fabs(stats.overflow_pct() - 200 * gaussian_tail(464 / (own * factor))) < 0.1);
    }
}

TEST_CASE("a lognormal tensor with sigma 4 keeps 30 dB while nine tenths of it are flushed to zero") {
    std::vector<float> values = normal();
    for (float& v : values) v = std::exp(4 * v);
    const CastStats stats = stats_of("current", values);
    CHECK(stats.sqnr_db() > 30);
    // x 448 / amax <= 2^-10 becomes 0.
    const double z = (std::log(static_cast<double>(stats.amax)) - std::log(448 * 1024.0)) / 4;
    CHECK(std::fabs(stats.underflow_pct() - 100 * (1 - gaussian_tail(z))) < 0.1);
    CHECK(stats.underflow_pct() > 90);
}

TEST_CASE("one outlier of 1000 sigma ruins INT8 for the others and not E4M3") {
    std::vector<float> values = normal();
    values[1234] = 1000;
    CHECK(stats_of("int8", values).underflow_pct() > 99);
    CHECK(stats_of("current", values).underflow_pct() < 1);
}
