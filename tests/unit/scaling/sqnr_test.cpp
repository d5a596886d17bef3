// The SQNR table of numerics.md 5.2, which was computed independently (numpy): N(0, 1), a million samples.
// Tolerances are the table's spread over its seeds, at least 0.03 dB for the last digit it prints.
#include <doctest/doctest.h>

#include <algorithm>
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

std::vector<float> normal(std::uint64_t seed = 1) {
    std::vector<float> values(kCount);
    Rng(seed).fill_normal(values);
    return values;
}

constexpr int kSeeds = 8;  // as the table's

// Mean over the seeds.
struct Means {
    double sqnr_db = 0, underflow_pct = 0;
};
Means& operator+=(Means& sum, const CastStats& stats) {
    sum.sqnr_db += stats.sqnr_db() / kSeeds;
    sum.underflow_pct += stats.underflow_pct() / kSeeds;
    return sum;
}

double gaussian_tail(double z) { return std::erfc(z / std::sqrt(2.0)) / 2; }  // P(x > z)

}  // namespace

TEST_CASE("SQNR and underflow of Gaussian tensors agree with the independent table") {
    struct Row {
        const char* recipe;
        double sqnr_db, tolerance_db, underflow_pct, tolerance_pct;
        TensorClass tensor = TensorClass::x;
        std::size_t rows = 1;
        Means means = {};
    };
    std::vector<Row> table = {
        {"unscaled:fwd=fp16", 73.65, 0.03, 0, 0.01},
        {"unscaled:fwd=tf32", 73.65, 0.03, 0, 0},
        {"bf16", 55.58, 0.03, 0, 0},
        {"int8", 38.88, 0.7, 1.58, 0.2},
        {"current:fwd=e3m4", 37.56, 0.03, 0.20, 0.03},
        {"current", 31.55, 0.03, 0.0009, 0.001},
        {"block128:pow2=0", 31.80, 0.03, 0.0005, 0.001},
        {"block128", 31.52, 0.03, 0.0005, 0.001},
        {"rowwise", 31.56, 0.03, 0.0006, 0.001, TensorClass::x, 1000},
        {"unscaled", 31.52, 0.03, 0.08, 0.01},
        {"mxfp8", 31.52, 0.03, 0.0006, 0.001},
        {"mxfp8:mxrule=even", 31.18, 0.03, 0.0006, 0.001},
        {"mxfp8:mxrule=floor", 30.64, 0.03, 0.0006, 0.001},
        {"current:fwd=e2m3", 30.22, 0.4, 3.3, 0.3},
        {"mxfp6-e2m3", 30.96, 0.03, 2.3, 0.1},
        {"mxfp6-e2m3:mxrule=floor", 30.94, 0.03, 2.3, 0.5},
        {"current", 25.57, 0.03, 0, 0.0001, TensorClass::dy},
        {"mxfp8:fwd=e5m2", 25.54, 0.03, 0, 0.0001},
        {"mxfp8:fwd=e5m2:mxrule=floor", 25.35, 0.03, 0, 0.0001},
        {"current:fwd=e3m2", 25.57, 0.03, 0.45, 0.05},
        {"mxfp6-e3m2", 25.54, 0.03, 0.30, 0.02},
        {"mxfp6-e3m2:mxrule=floor", 25.35, 0.03, 0.28, 0.02},
        {"nvfp4", 20.43, 0.03, 6.8, 0.1},
        {"mxfp4", 18.76, 0.03, 10.7, 0.1},
        {"mxfp4:mxrule=even", 19.04, 0.03, 9.7, 0.1},
        {"mxfp4:mxrule=floor", 18.79, 0.03, 8.8, 0.1},
        {"current:fwd=e2m1", 17.36, 0.7, 16.5, 1.5},
    };
    for (int seed = 1; seed <= kSeeds; ++seed) {
        const std::vector<float> values = normal(static_cast<std::uint64_t>(seed));
        for (Row& row : table) row.means += stats_of(row.recipe, values, row.tensor, row.rows);
    }
    for (const Row& row : table) {
        CAPTURE(std::string(row.recipe));
        CHECK(std::fabs(row.means.sqnr_db - row.sqnr_db) <= row.tolerance_db);
        CHECK(std::fabs(row.means.underflow_pct - row.underflow_pct) <= row.tolerance_pct);
    }
}

TEST_CASE("INT8 wins on uniform data, and its lead is gone on Laplace data") {
    Means int8_uniform, e4m3_uniform, int8_laplace, e4m3_laplace;
    for (int seed = 1; seed <= kSeeds; ++seed) {
        std::vector<float> uniform(kCount), laplace(kCount);
        Rng rng(static_cast<std::uint64_t>(seed));
        for (float& x : uniform) x = static_cast<float>(2 * rng.uniform() - 1);
        for (float& x : laplace)
            x = static_cast<float>((rng.uniform() < 0.5 ? -1 : 1) * -std::log1p(-rng.uniform()));
        int8_uniform += stats_of("int8", uniform), e4m3_uniform += stats_of("current", uniform);
        const CastStats int8 = stats_of("int8", laplace);
        // Steps of amax / 127, evenly wrong by up to a half, against a variance of 2.
        const double step = static_cast<double>(int8.amax) / 127;
        CHECK(std::fabs(int8.sqnr_db() - 10 * std::log10(2 * 12 / (step * step))) <= 0.1);
        int8_laplace += int8, e4m3_laplace += stats_of("current", laplace);
    }
    CHECK(std::fabs(int8_uniform.sqnr_db - 48.1) <= 0.1);
    CHECK(std::fabs(e4m3_uniform.sqnr_db - 31.9) <= 0.1);
    CHECK(std::fabs(e4m3_laplace.sqnr_db - 31.5) <= 0.1);
    // Its scale hangs on one draw, the largest: 0.7 dB, as wide as the table's own spread.
    CHECK(std::fabs(int8_laplace.sqnr_db - 32.3) <= 0.7);
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

TEST_CASE(
    "what a log-normal tensor loses follows from its largest element: 66.6 % at sigma 3, 98.5 % at sigma 4") {
    // x 448 / amax <= 2^-10 becomes 0: of exp(sigma z) what lies below z = ln(amax) / sigma - ln(448 * 1024)
    // / sigma.
    const auto lost_pct = [](double sigma, double largest_z) {
        return 100 * (1 - gaussian_tail(largest_z - std::log(448 * 1024.0) / sigma));
    };
    double least = 100, most = 0;
    for (int seed = 1; seed <= kSeeds; ++seed) {
        for (const double sigma : {3.0, 4.0}) {
            std::vector<float> values = normal(static_cast<std::uint64_t>(seed));
            for (float& v : values) v = static_cast<float>(std::exp(sigma * static_cast<double>(v)));
            const CastStats stats = stats_of("current", values);
            const double largest_z = std::log(static_cast<double>(stats.amax)) / sigma;
            CHECK(std::fabs(stats.underflow_pct() - lost_pct(sigma, largest_z)) < 0.1);
            if (sigma == 4) {
                CHECK(stats.sqnr_db() > 30);  // and it would go unnoticed
                CHECK(stats.underflow_pct() > 90);
            } else {
                least = std::min(least, stats.underflow_pct()), most = std::max(most, stats.underflow_pct());
                const CastStats e5m2 = stats_of("current", values, TensorClass::dy);
                CHECK(e5m2.underflow_pct() < 1);
                CHECK(std::fabs(e5m2.sqnr_db() - 27.0) < 4);
            }
        }
    }
    CHECK(least < 66.6);
    CHECK(66.6 < most);
    // The table's sample of sigma 4 holds a draw of 5.43 sigma, as one in 35 such samples does.
    std::vector<float> values = normal();
    for (float& v : values) v = std::exp(4 * v);
    values[0] = static_cast<float>(std::exp(4 * 5.43));
    CHECK(std::fabs(stats_of("current", values).underflow_pct() - 98.5) < 0.1);
}

TEST_CASE("one outlier ruins INT8 for the others and no FP8 recipe") {
    // SQNR over the others.
    const auto inlier_db = [](const char* recipe, float outlier, TensorClass tensor = TensorClass::x) {
        constexpr std::size_t kAt = 1234;
        std::vector<float> values = normal(), out(kCount);
        values[kAt] = outlier;
        CastStats stats =
            quantize(cast_plan(parse_recipe(recipe), tensor), values, out, {.rows = 1, .cols = kCount}).stats;
        const double x = static_cast<double>(outlier), error = x - static_cast<double>(out[kAt]);
        stats.signal -= x * x;
        stats.noise -= error * error;
        return stats.sqnr_db();
    };
    CHECK(std::fabs(inlier_db("int8", 100) - 12.9) <= 0.1);
    CHECK(std::fabs(inlier_db("int8", 1000) - 0.0) <= 0.1);
    CHECK(std::fabs(inlier_db("current", 1000) - 31.5) <= 0.1);
    CHECK(std::fabs(inlier_db("current", 1e4F) - 31.3) <= 0.1);
    CHECK(std::fabs(inlier_db("current", 1000, TensorClass::dy) - 25.6) <= 0.1);
    CHECK(std::fabs(inlier_db("mxfp8", 1000) - 31.5) <= 0.1);
    CHECK(std::fabs(inlier_db("block128", 1000) - 31.5) <= 0.1);
    CHECK(std::fabs(inlier_db("nvfp4", 1000) - 20.4) <= 0.1);
    std::vector<float> values = normal();
    values[1234] = 1000;
    CHECK(stats_of("int8", values).underflow_pct() > 99);
    CHECK(stats_of("current", values).underflow_pct() < 1);
}

// curriculum.md 1.4: 0.1 % of the values x 1000; SQNR of the others E4M3 31.45 dB, MXFP8 31.58, INT8 and
// per-tensor FP4 0 dB.
TEST_CASE("a thousand outliers among a million cost E4M3 a tenth of a decibel, INT8 and FP4 everything") {
    const auto inlier_db = [](const char* recipe) {
        std::vector<float> values = normal(), out(kCount);
        for (std::size_t i = 0; i < kCount; i += 1000) values[i] *= 1000;
        quantize(cast_plan(parse_recipe(recipe), TensorClass::x), values, out, {.rows = 1, .cols = kCount});
        double signal = 0, noise = 0;
        for (std::size_t i = 0; i < kCount; ++i) {
            if (i % 1000 == 0) continue;
            const double x = static_cast<double>(values[i]), error = x - static_cast<double>(out[i]);
            signal += x * x, noise += error * error;
        }
        return 10 * std::log10(signal / noise);
    };
    CHECK(std::fabs(inlier_db("current") - 31.45) <= 0.1);
    CHECK(std::fabs(inlier_db("mxfp8") - 31.58) <= 0.1);
    CHECK(std::fabs(inlier_db("int8")) <= 0.1);
    CHECK(std::fabs(inlier_db("current:fwd=e2m1")) <= 0.1);
}

// numerics.md 5.3: 31.51 to 31.57 over the fractions of log2(scale), 30.2 at 2^-12 (of a sample with a
// smaller amax: ours are 29.9 to 30.1, as each amax and the width of a Gaussian's gaps at its scale make
// them).
TEST_CASE(
    "a scale's fraction costs hundredths of a decibel, one far too small what the subnormal gaps cost") {
    struct At {
        double sqnr_db, sigma;  // sigma: the scaled tensor's
    };
    const auto at = [&](TensorClass tensor, double factor, int seed = 1) -> At {
        const std::vector<float> values = normal(static_cast<std::uint64_t>(seed));
        std::vector<float> out(values.size());
        const CastPlan plan = cast_plan(parse_recipe("delayed"), tensor);
        QuantizeRequest request{.rows = 1, .cols = kCount};
        const double scale = factor * static_cast<double>(quantize(plan, values, out, request).scale);
        request.tensor_scale = static_cast<float>(scale);
        return {quantize(plan, values, out, request).stats.sqnr_db(), scale};
    };
    for (int eighth = 0; eighth < 8; ++eighth) {
        CAPTURE(eighth);
        CHECK(std::fabs(at(TensorClass::x, std::exp2(-eighth / 8.0)).sqnr_db - 31.54) <= 0.04);
    }
    for (int seed = 1; seed <= kSeeds; ++seed) {
        const auto [sqnr_db, sigma] = at(TensorClass::x, 0x1p-12, seed);
        double noise = 0, lo = 0;  // gaps of 2^-9 up to 2^-5, then twice as wide in every binade
        for (int top = -5; top <= 8; ++top) {
            const double hi = std::exp2(top), gap = std::exp2(top - 4);
            noise += 2 * (gaussian_tail(lo / sigma) - gaussian_tail(hi / sigma)) * gap * gap / 12;
            lo = hi;
        }
        CHECK(std::fabs(sqnr_db - 10 * std::log10(sigma * sigma / noise)) <= 0.1);
    }
    CHECK(std::fabs(at(TensorClass::dy, 0x1p-24).sqnr_db - 25.6) <= 0.1);
}

// Both operands cast apart: the noise of two, 3 dB more than of one.
TEST_CASE("a product of two cast matrices keeps 3 dB less than either, whatever its length") {
    constexpr std::size_t kRows = 128;
    const auto product_db = [](const char* recipe, TensorClass left, std::size_t k) {
        std::vector<float> a(kRows * k), b(kRows * k), qa(a.size()), qb(b.size());
        Rng(1).fill_normal(a), Rng(2).fill_normal(b);
        const Recipe parsed = parse_recipe(recipe);
        quantize(cast_plan(parsed, left), a, qa, {.rows = kRows, .cols = k});
        quantize(cast_plan(parsed, TensorClass::w), b, qb, {.rows = kRows, .cols = k});
        double signal = 0, noise = 0;
        for (std::size_t i = 0; i < kRows; ++i)
            for (std::size_t j = 0; j < kRows; ++j) {
                double exact = 0, cast = 0;
                for (std::size_t l = 0; l < k; ++l) {
                    exact += static_cast<double>(a[i * k + l]) * static_cast<double>(b[j * k + l]);
                    cast += static_cast<double>(qa[i * k + l]) * static_cast<double>(qb[j * k + l]);
                }
                signal += exact * exact, noise += (exact - cast) * (exact - cast);
            }
        return 10 * std::log10(signal / noise);
    };
    for (const std::size_t k : {64, 512}) {
        CAPTURE(k);
        CHECK(std::fabs(product_db("current", TensorClass::x, k) - 28.5) <= 0.15);
        // 24.5 in the independent table; the noises of 25.57 and 31.55 dB add up to 24.59.
        CHECK(std::fabs(product_db("current", TensorClass::dy, k) - 24.59) <= 0.15);
        CHECK(std::fabs(product_db("mxfp8", TensorClass::x, k) - 28.5) <= 0.15);
        CHECK(std::fabs(product_db("bf16", TensorClass::x, k) - 52.5) <= 0.15);
        CHECK(std::fabs(product_db("nvfp4", TensorClass::x, k) - 17.4) <= 0.15);
        CHECK(std::fabs(product_db("mxfp4", TensorClass::x, k) - 15.8) <= 0.15);
    }
}
