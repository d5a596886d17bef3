#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/rng.h"
#include "core/formats/codec.h"

using namespace fp8lab;

namespace {

// Draws 100,000 times x, 1,000 random numbers of either sign, log-uniform from half the smallest value of the
// format to its largest, and holds the mean of each to its standard error. What is counted are codes: how
// many are the neighbour above, while all others must be the neighbour below. A vector of draws costs about 1
// ns each, so that 10^8 of them a format and seed take a tenth of a second.
template <class Code>
void check_means(const FormatInfo& format, std::uint64_t seed) {
    constexpr int kNumbers = 1000;
    constexpr std::size_t kDraws = 100000;
    CAPTURE(std::string(format.name));
    CAPTURE(seed);
    Rng numbers(seed, 1000);
    const double lo = std::log2(min_subnormal(format) / 2), hi = std::log2(max_finite(format));
    std::vector<float> values(kDraws);
    std::vector<Code> codes(kDraws);
    int outside_3 = 0, outside_5 = 0, off_grid = 0;
    double sum_z = 0;
    for (int i = 0; i < kNumbers; ++i) {
        const double sign = numbers.uniform() < 0.5 ? -1 : 1;
        const auto x = static_cast<float>(sign * std::exp2(lo + (hi - lo) * numbers.uniform()));
        const auto down = static_cast<Code>(encode(format, x, Rounding::toward_zero));
        const auto up = static_cast<Code>(encode(format, x, Rounding::stochastic, Overflow::saturate,
                                                 std::numeric_limits<std::uint32_t>::max()));
        const double below = std::fabs(value_of(format, down)), above = std::fabs(value_of(format, up));
        const double p = (std::fabs(static_cast<double>(x)) - below) / (above - below);
        std::fill(values.begin(), values.end(), x);
        encode(format, values, codes,
               {.rounding = Rounding::stochastic, .seed = seed, .stream = static_cast<std::uint64_t>(i)});
        const auto ups = std::count(codes.begin(), codes.end(), up);
        off_grid += ups + std::count(codes.begin(), codes.end(), down) != static_cast<std::ptrdiff_t>(kDraws);
        const double n = kDraws, z = (static_cast<double>(ups) / n - p) / std::sqrt(p * (1 - p) / n);
        outside_3 += std::fabs(z) > 3;
        outside_5 += std::fabs(z) > 5;
        sum_z += z;
    }
    CHECK(outside_3 <= 10);
    CHECK(outside_5 == 0);
    CHECK(off_grid == 0);
    CHECK(std::fabs(sum_z / kNumbers) <= 0.1);
}

void check_all_means(std::uint64_t seed) {
    for (const FormatInfo& format : formats()) {
        if (format.specials == Specials::scale || format.name == "fp32") continue;
        switch (storage_bytes(format)) {
            case 1:
                check_means<std::uint8_t>(format, seed);
                break;
            case 2:
                check_means<std::uint16_t>(format, seed);
                break;
            default:
                check_means<std::uint32_t>(format, seed);
        }
    }
}

// How many of 2^k evenly spaced random numbers round x up in magnitude.
std::int64_t count_up(const FormatInfo& format, float x, int k) {
    const std::uint32_t down = encode(format, x, Rounding::toward_zero);
    std::int64_t up = 0;
    for (std::uint32_t i = 0; i < 1U << k; ++i) {
        if (encode(format, x, Rounding::stochastic, Overflow::saturate, i << (32 - k)) != down) ++up;
    }
    return up;
}

}  // namespace

TEST_CASE("the share of random numbers that round up is exactly the distance to the lower neighbour") {
    const FormatInfo& e5m2 = find_format("e5m2");  // 256 and 320 are neighbours
    for (const int above : {0, 1, 3, 21, 32, 55, 63}) {
        CAPTURE(above);
        CHECK(count_up(e5m2, static_cast<float>(256 + above), 6) == above);
        CHECK(count_up(e5m2, static_cast<float>(-256 - above), 6) == above);
    }
    const FormatInfo& e4m3 = find_format("e4m3");
    CHECK(count_up(e4m3, 0x1.0Cp-9F, 20) == 0xC << 12);  // 1.75 % of the way between two subnormals
    CHECK(count_up(e4m3, 0x1p-20F, 11) == 1);            // P = 2^-11 from zero
    CHECK(count_up(find_format("int8"), 2.25F, 8) == 64);
    CHECK(count_up(find_format("bf16"), 1 + 0x1.8p-9F, 16) == 0x6000);
}

TEST_CASE("gfloat's golden counts for e5m2") {
    // gfloat rounds the probability to k bits, ties to even; ours has all of them. graphcore-research/gfloat
    // test_round.py
    const struct {
        float x;
        int k;
        double ups;
    } golden[] = {{259, 3, 0}, {259, 5, 2}, {277, 3, 3}, {288, 3, 4}, {311, 3, 7}};
    for (const auto& g : golden) {
        CAPTURE(g.x);
        CAPTURE(g.k);
        const double exact = static_cast<double>(count_up(find_format("e5m2"), g.x, 16)) / 65536;
        CHECK(std::nearbyint(std::ldexp(exact, g.k)) == g.ups);
    }
}

TEST_CASE("far below the smallest subnormal every probability down to 2^-32 is exact") {
    const FormatInfo& e4m3 = find_format("e4m3");
    const auto rounds_up = [&](float x, std::uint32_t random) {
        return encode(e4m3, x, Rounding::stochastic, Overflow::saturate, random) == 1;
    };
    const float tiny = 0x1p-41F;  // 2^-32 of the step 2^-9: one random number of 2^32
    CHECK(rounds_up(tiny, 0xFFFFFFFF));
    CHECK_FALSE(rounds_up(tiny, 0xFFFFFFFE));
    CHECK(rounds_up(3 * tiny, 0xFFFFFFFD));
    CHECK_FALSE(rounds_up(3 * tiny, 0xFFFFFFFC));
    CHECK_FALSE(rounds_up(0x1p-149F, 0xFFFFFFFF));
    CHECK_FALSE(rounds_up(0, 0xFFFFFFFF));
}

TEST_CASE("the carry of a stochastic rounding runs into the exponent") {
    const FormatInfo& e4m3 = find_format("e4m3");
    CHECK(decode(e4m3, encode(e4m3, 1.99F, Rounding::stochastic, Overflow::saturate, 0xFFFFFFFF)) == 2);
    CHECK(decode(e4m3, encode(e4m3, 0x1.FFp-7F, Rounding::stochastic, Overflow::saturate, 0xFFFFFFFF)) ==
          0x1p-6F);
    CHECK(encode(e4m3, 460, Rounding::stochastic, Overflow::saturate, 0xFFFFFFFF) == 0x7E);
    CHECK(encode(e4m3, 460, Rounding::stochastic, Overflow::nonsaturate, 0xFFFFFFFF) == 0x7F);
    CHECK(encode(e4m3, 460, Rounding::stochastic, Overflow::nonsaturate, 0) == 0x7E);
}

TEST_CASE("a value on the grid never moves") {
    for (const FormatInfo& f : formats()) {
        if (f.specials == Specials::scale || width_bits(f) > 8) continue;
        for (const CodeValue& v : positive_values(f)) {
            REQUIRE(encode(f, static_cast<float>(v.value), Rounding::stochastic, Overflow::saturate, ~0U) ==
                    v.code);
        }
    }
}

TEST_CASE("the mean of many stochastic casts is the value, and they hit its two neighbours only") {
    const struct {
        float x, lo, hi;
    } cases[] = {
        {1.03F, 1, 1.125F}, {17.3F, 16, 18}, {300, 288, 320}, {0.0005F, 0, 0x1p-9F}, {-17.3F, -18, -16}};
    const std::size_t n = 1 << 20;
    for (const auto& c : cases) {
        CAPTURE(c.x);
        std::vector<float> values(n, c.x);
        quantize(find_format("e4m3"), values, values, {.rounding = Rounding::stochastic, .seed = 3});
        double sum = 0;
        for (const float q : values) {
            REQUIRE((q == c.lo || q == c.hi));
            sum += static_cast<double>(q);
        }
        const double x = static_cast<double>(c.x), lo = static_cast<double>(c.lo),
                     hi = static_cast<double>(c.hi);
        const double sigma = std::sqrt((x - lo) * (hi - x) / static_cast<double>(n));
        CHECK(std::abs(sum / static_cast<double>(n) - x) < 5 * sigma);
    }
}

TEST_CASE("the means of 1,000 numbers stay within their standard errors in every format: seed 1") {
    check_all_means(1);
}
TEST_CASE("the means of 1,000 numbers stay within their standard errors in every format: seed 2") {
    check_all_means(2);
}
TEST_CASE("the means of 1,000 numbers stay within their standard errors in every format: seed 3") {
    check_all_means(3);
}
