#include "core/formats/format.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "core/base/error.h"
#include "core/formats/codec.h"

using namespace fp8lab;

namespace {

// The definition table of the specifications, typed in from them and not computed.
struct Expected {
    const char* name;
    int bits, storage;
    double max, min_normal, min_subnormal;
    std::uint32_t max_code, nan;
    double threshold;
    bool inclusive;
    std::int64_t finite, distinct, infinities, nans;
};

const Expected kExpected[] = {
    {"fp32", 32, 4, 0x1.FFFFFEp+127, 0x1p-126, 0x1p-149, 0x7F7FFFFF, 0x7FFFFFFF, 0x1.FFFFFFp+127, true,
     4278190080, 4278190079, 2, 16777214},
    {"fp16", 16, 2, 65504, 0x1p-14, 0x1p-24, 0x7BFF, 0x7FFF, 65520, true, 63488, 63487, 2, 2046},
    {"bf16", 16, 2, 0x1.FEp+127, 0x1p-126, 0x1p-133, 0x7F7F, 0x7FFF, 0x1.FFp+127, true, 65280, 65279, 2, 254},
    {"tf32", 19, 4, 0x1.FFCp+127, 0x1p-126, 0x1p-136, 0x7F7FE000, 0x7FFFE000, 0x1.FFEp+127, true, 522240,
     522239, 2, 2046},
    {"e4m3", 8, 1, 448, 0x1p-6, 0x1p-9, 0x7E, 0x7F, 464, false, 254, 253, 0, 2},
    {"e5m2", 8, 1, 57344, 0x1p-14, 0x1p-16, 0x7B, 0x7F, 61440, true, 248, 247, 2, 6},
    {"e4m3fnuz", 8, 1, 240, 0x1p-7, 0x1p-10, 0x7F, 0x80, 248, true, 255, 255, 0, 1},
    {"e5m2fnuz", 8, 1, 57344, 0x1p-15, 0x1p-17, 0x7F, 0x80, 61440, true, 255, 255, 0, 1},
    {"e4m3ieee", 8, 1, 240, 0x1p-6, 0x1p-9, 0x77, 0x7F, 248, true, 240, 239, 2, 14},
    {"e3m4", 8, 1, 15.5, 0x1p-2, 0x1p-6, 0x6F, 0x7F, 15.75, true, 224, 223, 2, 30},
    {"e3m2", 6, 1, 28, 0x1p-2, 0x1p-4, 0x1F, 0x1F, 30, true, 64, 63, 0, 0},
    {"e2m3", 6, 1, 7.5, 1, 0x1p-3, 0x1F, 0x1F, 7.75, true, 64, 63, 0, 0},
    {"e2m1", 4, 1, 6, 1, 0.5, 0x7, 0x7, 7, true, 16, 15, 0, 0},
    {"e8m0", 8, 1, 0x1p127, 0x1p-127, 0x1p-127, 0xFE, 0xFF, 0x1p127, false, 255, 255, 0, 1},
    {"int8", 8, 1, 127, 1, 1, 0x7F, 0, 127.5, true, 256, 256, 0, 0},
};

// The comment above FormatInfo and those of Specials, as arithmetic.
double by_definition(const FormatInfo& f, std::uint32_t code) {
    if (f.kind == Kind::integer) return static_cast<std::int8_t>(code);
    const std::uint32_t m = code % (1U << f.mantissa_bits),
                        e = (code >> f.mantissa_bits) % (1U << f.exponent_bits),
                        top = (1U << f.exponent_bits) - 1, ones = (1U << f.mantissa_bits) - 1;
    const bool negative = f.is_signed && code >> (f.mantissa_bits + f.exponent_bits) != 0;
    const double sign = negative ? -1 : 1;
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    if (f.specials == Specials::scale) return e == top ? kNan : std::pow(2.0, static_cast<int>(e) - f.bias);
    if (f.specials == Specials::ieee && e == top) return m == 0 ? sign * HUGE_VAL : kNan;
    if (f.specials == Specials::fn && e == top && m == ones) return kNan;
    if (f.specials == Specials::fnuz && negative && e == 0 && m == 0) return kNan;
    const double fraction = m / std::pow(2.0, f.mantissa_bits);
    if (e == 0) return sign * std::pow(2.0, 1 - f.bias) * fraction;
    return sign * std::pow(2.0, static_cast<int>(e) - f.bias) * (1 + fraction);
}

std::string error_of(const auto& act) {
    try {
        act();
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::usage);
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("every format has the facts of its specification") {
    for (const Expected& e : kExpected) {
        const FormatInfo& f = find_format(e.name);
        CAPTURE(f.name);
        CHECK(f.name == e.name);
        CHECK(width_bits(f) == e.bits);
        CHECK(storage_bytes(f) == e.storage);
        CHECK(max_finite(f) == e.max);
        CHECK(min_normal(f) == e.min_normal);
        CHECK(min_subnormal(f) == e.min_subnormal);
        CHECK(max_code(f) == e.max_code);
        CHECK(canonical_nan(f) == e.nan);
        CHECK(overflow_threshold(f).value == e.threshold);
        CHECK(overflow_threshold(f).inclusive == e.inclusive);
        const CodeCounts counts = count_codes(f);
        CHECK(counts.total == std::int64_t{1} << e.bits);
        CHECK(counts.finite == e.finite);
        CHECK(counts.distinct == e.distinct);
        CHECK(counts.infinities == e.infinities);
        CHECK(counts.nans == e.nans);
    }
}

TEST_CASE(
    "every row of the table is what its bits, bias and special values say, by a search through its codes") {
    std::set<std::string_view> names, labels;
    for (const FormatInfo& f : formats()) {
        CAPTURE(f.name);
        CHECK(names.insert(f.name).second);
        CHECK(labels.insert(f.label).second);
        for (const char c : f.name) CHECK((std::islower(c) || std::isdigit(c)));
        if (width_bits(f) > 16) continue;
        double largest = 0, lowest_normal = HUGE_VAL, lowest = HUGE_VAL;
        for (std::uint32_t code = 0; code < 1U << width_bits(f); ++code) {
            const double value = by_definition(f, code);
            if (std::isnan(value)) {
                REQUIRE(std::isnan(value_of(f, code)));
                continue;
            }
            REQUIRE(value_of(f, code) == value);
            REQUIRE(std::signbit(value_of(f, code)) == std::signbit(value));
            if (!std::isfinite(value) || value <= 0) continue;
            largest = std::max(largest, value);
            lowest = std::min(lowest, value);
            if (classify(f, code) == CodeClass::normal) lowest_normal = std::min(lowest_normal, value);
        }
        CHECK(max_finite(f) == largest);
        CHECK(value_of(f, max_code(f)) == largest);
        CHECK(min_subnormal(f) == lowest);
        CHECK(min_normal(f) == lowest_normal);
    }
}

TEST_CASE("a size passes the overflow threshold exactly where rounding to nearest would leave the format") {
    for (const FormatInfo& f : formats()) {
        if (f.name == "fp32" || f.specials == Specials::scale) continue;  // no float passes; E8M0 rounds up
        CAPTURE(f.name);
        const OverflowThreshold threshold = overflow_threshold(f);
        const float last = threshold.largest_below();
        const float next = std::nextafter(last, std::numeric_limits<float>::infinity());
        CHECK_FALSE(threshold.is_passed_by(static_cast<double>(last)));
        CHECK(threshold.is_passed_by(static_cast<double>(next)));
        CHECK(decode(f, encode(f, last)) == max_finite(f));
        if (has_infinity(f) || has_nan(f))
            CHECK_FALSE(std::isfinite(decode(f, encode(f, next, Rounding::nearest, Overflow::nonsaturate))));
        CHECK_FALSE(threshold.is_passed_by(std::numeric_limits<double>::quiet_NaN()));
        CHECK(threshold.is_passed_by(std::numeric_limits<double>::infinity()));
    }
    CHECK(overflow_threshold(find_format("e4m3")).largest_below() == 464);
    CHECK(overflow_threshold(find_format("e5m2")).largest_below() == std::nextafter(61440.0F, 0.0F));
}

TEST_CASE("counts by class are what counting every code gives") {
    for (const FormatInfo& f : formats()) {
        if (width_bits(f) > 16) continue;
        CAPTURE(f.name);
        std::map<CodeClass, std::int64_t> found;
        std::set<double> distinct;
        for (std::uint32_t code = 0; code < 1U << width_bits(f); ++code) {
            ++found[classify(f, code)];
            if (std::isfinite(value_of(f, code))) distinct.insert(value_of(f, code));
        }
        const CodeCounts counts = count_codes(f);
        CHECK(found[CodeClass::nan] == counts.nans);
        CHECK(found[CodeClass::infinity] == counts.infinities);
        CHECK(found[CodeClass::subnormal] == counts.subnormals);
        CHECK(static_cast<std::int64_t>(distinct.size()) == counts.distinct);
    }
}

TEST_CASE("unit roundoff is half an ulp of one") {
    CHECK(unit_roundoff(find_format("e4m3")) == 0x1p-4);
    CHECK(unit_roundoff(find_format("e5m2")) == 0x1p-3);
    CHECK(unit_roundoff(find_format("bf16")) == 0x1p-8);
    CHECK(unit_roundoff(find_format("fp16")) == 0x1p-11);
    CHECK(unit_roundoff(find_format("int8")) == 0.5);
}

TEST_CASE("codes decode to the values of the specifications") {
    const auto value = [](const char* name, std::uint32_t code) { return value_of(find_format(name), code); };
    CHECK(value("e4m3", 0x38) == 1);
    CHECK(value("e4m3", 0x77) == 240);
    CHECK(value("e4m3", 0x78) == 256);
    CHECK(value("e4m3", 0x01) == 0x1p-9);
    CHECK(std::isnan(value("e4m3", 0x7F)));
    CHECK(std::isnan(value("e4m3", 0xFF)));
    CHECK(value("e5m2", 0x3C) == 1);
    CHECK(value("e5m2", 0xFC) == -HUGE_VAL);
    CHECK(std::isnan(value("e5m2", 0x7D)));
    CHECK(value("e4m3fnuz", 0x40) == 1);
    CHECK(value("e5m2fnuz", 0x40) == 1);
    CHECK(std::isnan(value("e4m3fnuz", 0x80)));
    CHECK(value("e3m4", 0x70) == HUGE_VAL);
    CHECK(value("e8m0", 127) == 1);
    CHECK(value("e8m0", 0) == 0x1p-127);
    CHECK(std::isnan(value("e8m0", 0xFF)));
    CHECK(value("int8", 0x80) == -128);
    CHECK(value("int8", 0xFF) == -1);
    CHECK(value("tf32", 0x3F802000) == 1 + 0x1p-10);
    const double e2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    for (std::uint32_t code = 0; code < 8; ++code) {
        CHECK(value("e2m1", code) == e2m1[code]);
        CHECK(value("e2m1", code + 8) == -e2m1[code]);
    }
    CHECK(std::signbit(value("e4m3", 0x80)));
}

TEST_CASE("names are found in any case and an unknown one lists the valid ones") {
    CHECK(find_format("E4M3").name == "e4m3");
    CHECK(find_format("BF16").label == "BF16");
    std::string list;
    for (const FormatInfo& f : formats()) list.append(list.empty() ? "" : " ").append(f.name);
    CHECK(list.starts_with("fp32 fp16 bf16 tf32 e4m3 e5m2 "));
    CHECK(error_of([] { find_format("e4m4", "--to"); }) == "--to: unknown format 'e4m4'; valid: " + list);
}

TEST_CASE("positive values ascend and end at the largest") {
    for (const FormatInfo& f : formats()) {
        if (width_bits(f) > 16) continue;
        CAPTURE(f.name);
        const std::vector<CodeValue> values = positive_values(f);
        CHECK(values.back().value == max_finite(f));
        CHECK(values.front().value == (f.name == "e8m0" ? 0x1p-127 : 0.0));
        for (std::size_t i = 1; i < values.size(); ++i) {
            REQUIRE(values[i].value > values[i - 1].value);
            REQUIRE(values[i].value == value_of(f, values[i].code));
        }
    }
    CHECK(error_of([] { positive_values(find_format("tf32")); }).find("tf32") != std::string::npos);
}

TEST_CASE("a custom format with the parameters of a known one has its facts") {
    for (const FormatInfo& f : formats()) {
        if (f.kind == Kind::integer || f.specials == Specials::scale || f.mantissa_bits > 10) continue;
        CAPTURE(f.name);
        const FormatInfo custom = custom_format(f.exponent_bits, f.mantissa_bits, f.bias, f.specials);
        CHECK(custom.name == "custom");
        CHECK(max_finite(custom) == max_finite(f));
        CHECK(max_code(custom) == max_code(f));
        CHECK(overflow_threshold(custom).value == overflow_threshold(f).value);
    }
    CHECK(max_finite(custom_format(3, 0, 0, Specials::finite)) == 128);
}

TEST_CASE("a custom format out of range says which number is wrong") {
    CHECK(error_of([] { custom_format(0, 3, 7, Specials::fn); }) ==
          "custom format: exponent bits must be 1 to 8");
    CHECK(error_of([] { custom_format(9, 3, 7, Specials::fn); }) ==
          "custom format: exponent bits must be 1 to 8");
    CHECK(error_of([] { custom_format(4, 11, 7, Specials::fn); }) ==
          "custom format: mantissa bits must be 0 to 10");
    CHECK(error_of([] { custom_format(4, 3, 128, Specials::fn); }) ==
          "custom format: bias must be -64 to 127");
    CHECK(error_of([] { custom_format(4, 3, -65, Specials::fn); }) ==
          "custom format: bias must be -64 to 127");
    CHECK(error_of([] { custom_format(4, 0, 7, Specials::ieee); }).find("1 mantissa bit") !=
          std::string::npos);
    CHECK(error_of([] { custom_format(1, 0, 0, Specials::fn); }).find("2 bits beside the sign") !=
          std::string::npos);
    CHECK(error_of([] { custom_format(8, 0, 127, Specials::scale); }).find("ieee, fn, fnuz or finite") !=
          std::string::npos);
    CHECK(error_of([] { custom_format(8, 3, 100, Specials::fn); }).find("raise the bias") !=
          std::string::npos);
}
