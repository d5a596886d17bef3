// read_number.h against std::from_chars of libstdc++, which is exact for floating point.
#include "core/base/read_number.h"

#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <random>
#include <string>

#include "core/base/units.h"

using namespace fp8lab;

namespace {

constexpr const char* kTexts[] = {"",
                                  "-",
                                  "+1",
                                  " 1",
                                  "1 ",
                                  ".",
                                  "-.",
                                  ".5",
                                  "5.",
                                  "-0",
                                  "0x10",
                                  "1e",
                                  "1e+",
                                  "1e-x",
                                  "1E5",
                                  "1e5,",
                                  "1.5.2",
                                  "1e400",
                                  "-1e400",
                                  "1e-400",
                                  "0e-400",
                                  "1e39",
                                  "1e-46",
                                  "1e-45",
                                  "7e-46",
                                  "inf",
                                  "-INF",
                                  "infin",
                                  "Infinity",
                                  "nan",
                                  "-NaN",
                                  "nan(",
                                  "nan(a_1)",
                                  "nan(a-)",
                                  "na",
                                  "i",
                                  "--1",
                                  "1-",
                                  "00012",
                                  "1e0000007",
                                  "1e99999999999999999999",
                                  "3.4028235677973366e38",
                                  "3.4028235677973367e38",
                                  "1.7976931348623158e308",
                                  "1.7976931348623159e308",
                                  "16777217",
                                  "33554435",
                                  "9007199254740993",
                                  "4.9406564584124654e-324",
                                  "2.4703282292062327e-324",
                                  "2.4703282292062328e-324",
                                  "1.1754943508222875e-38",
                                  "1.401298464324817e-45",
                                  "7.006492321624085e-46",
                                  "7.006492321624086e-46"};

template <class T>
auto bits_of(T value) {
    if constexpr (sizeof(T) == 4)
        return std::bit_cast<std::uint32_t>(value);
    else
        return std::bit_cast<std::uint64_t>(value);
}

template <class T>
void check_as_from_chars(const std::string& text) {
    T want = 7, got = 7;
    const auto wanted = std::from_chars(text.data(), text.data() + text.size(), want);
    const auto read = read_leading(text, got);
    CAPTURE(text);
    CHECK(read.ec == wanted.ec);
    CHECK(read.ptr - text.data() == wanted.ptr - text.data());
    CHECK(bits_of(got) == bits_of(want));
}

void check_both(const std::string& text) {
    check_as_from_chars<float>(text);
    check_as_from_chars<double>(text);
}

}  // namespace

TEST_CASE("floating point is read as std::from_chars reads it") {
    for (const char* text : kTexts) check_both(text);
    check_both("0." + std::string(400, '0') + "1");
    check_both(std::string(300, '9') + "e-280");
    check_both("1.00000005960464477539062500000000000000000000000000000000000000000000000000000000000001");
}

TEST_CASE(
    "every number is read back from its shortest text, and random decimals as std::from_chars reads them") {
    std::mt19937_64 random{7};
    for (int i = 0; i < 50'000; ++i) {
        const std::uint64_t bits = random();
        check_as_from_chars<double>(shortest(std::bit_cast<double>(bits)));
        check_as_from_chars<float>(shortest(std::bit_cast<float>(static_cast<std::uint32_t>(bits))));
        const int exponent = static_cast<int>(bits % 700) - 350;
        check_both(std::to_string(random()) + "." + std::to_string(random()) + "e" +
                   std::to_string(exponent));
    }
}

TEST_CASE("a number is all of the text") {
    double value = 0;
    int whole = 0;
    CHECK(read_number("2.5", value));
    CHECK(value == 2.5);
    CHECK_FALSE(read_number("2.5 ", value));
    CHECK_FALSE(read_number("", value));
    CHECK_FALSE(read_number("1e999", value));
    CHECK(read_number("-12", whole));
    CHECK(whole == -12);
    CHECK_FALSE(read_number("2.5", whole));
    CHECK_FALSE(read_number("99999999999", whole));
}
