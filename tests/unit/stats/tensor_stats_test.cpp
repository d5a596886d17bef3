#include "core/stats/tensor_stats.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/base/rng.h"
#include "core/formats/codec.h"

using namespace fp8lab;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
using Values = std::vector<float>;
constexpr OverflowThreshold kE4m3{464, false};

}  // namespace

TEST_CASE("SQNR is 10 log10 of signal over noise, infinite without noise, undefined without signal") {
    CastStats stats;
    CHECK(std::isnan(stats.sqnr_db()));
    stats.signal = 1000;
    CHECK(std::isinf(stats.sqnr_db()));
    stats.noise = 1;
    CHECK(stats.sqnr_db() == doctest::Approx(30));
}

TEST_CASE("percentages are of all elements") {
    CastStats stats;
    CHECK(stats.underflow_pct() == 0);
    stats.n = 8, stats.underflow = 2, stats.overflow = 1;
    CHECK(stats.underflow_pct() == 25);
    CHECK(stats.overflow_pct() == 12.5);
}

TEST_CASE("the lost mass is a share of the absolute sum and of the squares, not of the elements") {
    const Values x = {3, -0.5F, 0.25F, 0, kNan, -kInf}, q = {3, 0, 0, 0, kNan, -448}, scale = {1};
    const CastStats stats = measure_cast(x, q, scale, kE4m3);
    CHECK(stats.underflow == 2);
    CHECK(stats.mass.l1 == 3.75);
    CHECK(stats.lost_l1_pct() == doctest::Approx(20));
    CHECK(stats.lost_energy_pct() == doctest::Approx(100 * 0.3125 / 9.3125));
    const Values zeros = {0, 0};
    CHECK(measure_cast(zeros, zeros, scale, kE4m3).lost_l1_pct() == 0);
    CHECK(measure_cast(zeros, zeros, scale, kE4m3).lost_energy_pct() == 0);
}

TEST_CASE("statistics of parts add up") {
    CastStats a{.n = 2,
                .amax = 3,
                .underflow = 1,
                .overflow = 2,
                .nonfinite = 3,
                .signal = 4,
                .noise = 5,
                .mass = {8, 2, 1}};
    CastStats b{.n = 1,
                .amax = 7,
                .underflow = 1,
                .overflow = 1,
                .nonfinite = 1,
                .signal = 1,
                .noise = 1,
                .mass = {2, 1, 0.5}};
    a += b;
    CHECK(a.lost_l1_pct() == 30);
    CHECK(a.lost_energy_pct() == 30);
    CHECK(a.n == 3);
    CHECK(a.amax == 7);
    CHECK(a.underflow == 2);
    CHECK(a.overflow == 3);
    CHECK(a.nonfinite == 4);
    CHECK(a.signal == 5);
    CHECK(a.noise == 6);
}

TEST_CASE("measure_cast agrees with a plain loop for every length and on every vector target") {
    Values x(200), q(200), scales(200);
    Rng(3).fill_normal(x, 30);
    for (std::size_t i = 0; i < x.size(); ++i) {
        scales[i] = static_cast<float>(1 + i % 5) * 8;
        q[i] = std::round(x[i] / 8) * 8;
        if (i % 31 == 7) x[i] = i % 2 ? kNan : -kInf;
        if (i % 29 == 3) x[i] = 0;
    }
    for (const bool one_scale : {false, true})
        for (std::size_t n = 0; n <= x.size(); ++n) {
            CAPTURE(n);
            CAPTURE(one_scale);
            CastStats expected;
            expected.n = static_cast<std::int64_t>(n);
            for (std::size_t i = 0; i < n; ++i) {
                const float scaled = std::fabs(x[i]) * scales[one_scale ? 0 : i];
                expected.overflow += scaled > 464.0F;
                if (!std::isnan(x[i])) expected.amax = std::max(expected.amax, std::fabs(x[i]));
                if (!std::isfinite(x[i])) {
                    ++expected.nonfinite;
                    continue;
                }
                expected.underflow += x[i] != 0 && q[i] == 0;
                const double value = static_cast<double>(x[i]), error = static_cast<double>(x[i] - q[i]);
                expected.signal += value * value;
                expected.noise += error * error;
                expected.mass.l1 += std::fabs(value);
                if (q[i] == 0) expected.mass.lost_l1 += std::fabs(value);
                if (q[i] == 0) expected.mass.lost_energy += value * value;
            }
            const CastStats stats = measure_cast(std::span(x).first(n), std::span(q).first(n),
                                                 std::span(scales).first(one_scale ? 1 : n), kE4m3);
            CHECK(stats.n == expected.n);
            CHECK(stats.amax == expected.amax);
            CHECK(stats.overflow == expected.overflow);
            CHECK(stats.nonfinite == expected.nonfinite);
            CHECK(stats.underflow == expected.underflow);
            CHECK(stats.signal == doctest::Approx(expected.signal).epsilon(1e-13));
            CHECK(stats.noise == doctest::Approx(expected.noise).epsilon(1e-13));
            CHECK(stats.mass.l1 == doctest::Approx(expected.mass.l1).epsilon(1e-13));
            CHECK(stats.mass.lost_l1 == doctest::Approx(expected.mass.lost_l1).epsilon(1e-13));
            CHECK(stats.mass.lost_energy == doctest::Approx(expected.mass.lost_energy).epsilon(1e-13));
        }
}

TEST_CASE("squares of the largest floats do not overflow the sums") {
    const Values x = {3e38F, -3e38F}, q = {0, 0}, scale = {1};
    const CastStats stats = measure_cast(x, q, scale, kE4m3);
    CHECK(stats.signal == doctest::Approx(2 * 9e76));
    CHECK(stats.noise == stats.signal);
}

TEST_CASE("the overflow threshold may include its value") {
    const Values x = {464, std::nextafter(464.0F, 0.0F), std::nextafter(464.0F, 1000.0F)}, scale = {1};
    CHECK(measure_cast(x, x, scale, {464, false}).overflow == 1);
    CHECK(measure_cast(x, x, scale, {464, true}).overflow == 2);
    CHECK(measure_cast(x, x, scale, {static_cast<double>(kInf), false}).overflow == 0);
}

TEST_CASE("the histogram takes the exponent from the bits, subnormal floats included") {
    Log2Histogram h;
    const auto bin = [&](int exponent) {
        return h.counts[static_cast<std::size_t>(exponent - Log2Histogram::kLowest)];
    };
    // nextbelow(8) is where floor(log2f(x)) gives 3 instead of 2.
    h.add(Values{1, -1, 1.999F, 7.9999995F, 8, 0, -0.0F, kNan, kInf, -kInf, 0x1p-64F, 0x1p63F, 0x1.fffp63F});
    CHECK(h.n == 13);
    CHECK(bin(0) == 3);
    CHECK(bin(2) == 1);
    CHECK(bin(3) == 1);
    CHECK(bin(-64) == 1);
    CHECK(bin(63) == 2);
    CHECK(h.zeros == 2);
    CHECK(h.nonfinite == 3);
    h.add(Values{0x1p64F, 3e38F, 0x1.fffp-65F, 1e-40F, std::numeric_limits<float>::denorm_min()});
    CHECK(h.above == 2);
    CHECK(h.below == 3);
    const std::int64_t counted = std::accumulate(h.counts.begin(), h.counts.end(), std::int64_t{0});
    CHECK(counted + h.zeros + h.nonfinite + h.above + h.below == h.n);
}
