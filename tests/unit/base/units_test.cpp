#include "core/base/units.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/base/rng.h"

using namespace fp8lab;

TEST_CASE("numbers are shown with four significant digits and no trailing zeros") {
    CHECK(format_number(0) == "0");
    CHECK(format_number(448) == "448");
    CHECK(format_number(57344) == "57344");
    CHECK(format_number(0.001953125) == "0.001953");
    CHECK(format_number(0.015625) == "0.01562");  // a decimal tie: printf rounds the exact value to even
    CHECK(format_number(1.5) == "1.5");
    CHECK(format_number(99.996) == "100");
    CHECK(format_number(1.28e-3) == "0.00128");
    CHECK(format_number(9.99e-4) == "9.99e-4");
    CHECK(format_number(3.5e7) == "3.5e7");
    CHECK(format_number(-2.5) == "-2.5");
    CHECK(format_number(-2.5, 4, true) == "\u22122.5");
}

TEST_CASE("values that are not numbers are words") {
    CHECK(format_number(std::nan("")) == "NaN");
    CHECK(format_number(static_cast<double>(INFINITY)) == "+Inf");
    CHECK(format_number(static_cast<double>(-INFINITY)) == "-Inf");
    CHECK(shortest(std::nanf("")) == "nan");
    CHECK(shortest(-INFINITY) == "-inf");
}

TEST_CASE("the shortest decimal of any float reads back to the same bits") {
    Rng rng(1);
    for (int i = 0; i < 200000; ++i) {
        const float value = std::bit_cast<float>(rng.bits());
        if (std::isnan(value)) continue;
        const std::string text = shortest(value);
        CAPTURE(text);
        const float back = std::strtof(text.c_str(), nullptr);
        REQUIRE(std::bit_cast<std::uint32_t>(back) == std::bit_cast<std::uint32_t>(value));
    }
}

TEST_CASE("the exact decimal expansion has every digit") {
    CHECK(exact_decimal(448) == "448");
    CHECK(exact_decimal(0x1p-9) == "0.001953125");
    CHECK(exact_decimal(-0x1p-16) == "-0.0000152587890625");
    constexpr double kTiny = std::numeric_limits<double>::denorm_min();
    CHECK(exact_decimal(kTiny).size() == 1076);  // "0." and 1074 digits
    CHECK(std::strtod(exact_decimal(kTiny).c_str(), nullptr) == kTiny);
}

TEST_CASE("hexadecimal, thousands and bytes") {
    CHECK(hex_float(448) == "0x1.cp+8");
    CHECK(group_thousands(57344) == "57\u2009344");
    CHECK(group_thousands(999) == "999");
    CHECK(group_thousands(-1234567) == "\u22121\u2009234\u2009567");
    CHECK(format_bytes(96'000'000) == "96 MB");
    CHECK(power_of_two(-9) == "2^-9");
}

TEST_CASE("a number is copied rounded, exact, as hexadecimal, as C and as NumPy") {
    constexpr double kTiny = std::numeric_limits<double>::denorm_min();
    struct Row {
        double value;
        const char *rounded, *exact, *hex, *c, *numpy;
    };
    const Row rows[] = {
        {448, "448", "448", "0x1.cp+8", "448.0", "np.float64(448.0)"},
        {1.0 / 17, "0.05882", "0.058823529411764705", "0x1.e1e1e1e1e1e1ep-5", "0.058823529411764705",
         "np.float64(0.058823529411764705)"},
        {-2.5, "-2.5", "-2.5", "-0x1.4p+1", "-2.5", "np.float64(-2.5)"},
        {0.0, "0", "0", "0x0p+0", "0.0", "np.float64(0.0)"},
        {-0.0, "-0", "-0", "-0x0p+0", "-0.0", "np.float64(-0.0)"},
        {1e300, "1e300", "1e+300", "0x1.7e43c8800759cp+996", "1e+300", "np.float64(1e+300)"},
        {kTiny, "4.941e-324", "5e-324", "0x0.0000000000001p-1022", "5e-324", "np.float64(5e-324)"},
        {std::nan(""), "NaN", "nan", "nan", "NAN", "np.float64('nan')"},
        {double(INFINITY), "+Inf", "inf", "inf", "INFINITY", "np.float64('inf')"},
        {-double(INFINITY), "-Inf", "-inf", "-inf", "-INFINITY", "np.float64('-inf')"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.value);
        const NumberTexts texts = number_texts(row.value);
        CHECK(texts.rounded == row.rounded);
        CHECK(texts.exact == row.exact);
        CHECK(texts.hex == row.hex);
        CHECK(texts.c == row.c);
        CHECK(texts.numpy == row.numpy);
    }
}

TEST_CASE("what is copied as exact, hexadecimal and C reads back to the same bits") {
    Rng rng(2);
    for (int i = 0; i < 20000; ++i) {
        const double value =
            std::bit_cast<double>((static_cast<std::uint64_t>(rng.bits()) << 32) | rng.bits());
        if (!std::isfinite(value)) continue;
        const NumberTexts texts = number_texts(value);
        for (const std::string& text : {texts.exact, texts.hex, texts.c}) {
            CAPTURE(text);
            REQUIRE(std::bit_cast<std::uint64_t>(std::strtod(text.c_str(), nullptr)) ==
                    std::bit_cast<std::uint64_t>(value));
        }
    }
}
