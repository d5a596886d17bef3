#include "core/formats/codec.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "core/base/error.h"
#include "core/formats/golden.h"

using namespace fp8lab;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

const FormatInfo& fmt(std::string_view name) { return find_format(name); }
float above(double x) { return std::nextafter(static_cast<float>(x), kInf); }
float below(double x) { return std::nextafter(static_cast<float>(x), -kInf); }

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

TEST_CASE("golden edges: every code is NVIDIA's") {
    const GoldenTable edges = golden_edges();
    REQUIRE(edges.rows.size() == 2214);
    REQUIRE(edges.columns.size() == 7);
    for (std::size_t c = 0; c < edges.columns.size(); ++c) {
        const GoldenConversion& to = golden_conversions()[c];
        REQUIRE(edges.columns[c] == to.column);
        CAPTURE(to.column);
        for (const GoldenTable::Row& row : edges.rows) {
            CAPTURE(row.key);
            const auto code = encode(fmt(to.format), std::bit_cast<float>(row.key), to.rounding, to.overflow);
            REQUIRE(code == row.values[c]);
        }
    }
}

TEST_CASE("every code that is a number decodes and encodes to itself") {
    for (const FormatInfo& f : formats()) {
        CAPTURE(f.name);
        // TF32's codes step by 2^13; FP32's are sampled with a stride that is odd.
        const std::uint64_t step = f.name == "fp32" ? 9973 : f.name == "tf32" ? 1 << 13 : 1;
        const std::uint64_t end =
            width_bits(f) > 16 ? std::uint64_t{1} << 32 : std::uint64_t{1} << width_bits(f);
        for (std::uint64_t i = 0; i < end; i += step) {
            const auto code = static_cast<std::uint32_t>(i);
            CAPTURE(code);
            std::uint32_t expected = code;
            if (classify(f, code) == CodeClass::nan) expected = canonical_nan(f);
            if (f.kind == Kind::integer && code == 0x80) expected = 0x81;
            const std::uint32_t again =
                encode(f, decode(f, code), default_rounding(f), Overflow::nonsaturate);
            if (again != expected) REQUIRE(again == expected);
        }
    }
}

TEST_CASE("finite overflow starts exactly at the threshold of the format") {
    struct Case {
        const char* format;
        double last, first;          // the last float32 that stays, the first that overflows
        std::uint32_t nonsaturated;  // what the first becomes
    };
    const Case cases[] = {
        {"e4m3", 464, above(464), 0x7F},
        {"e5m2", below(61440), 61440, 0x7C},
        {"e4m3fnuz", below(248), 248, 0x80},
        {"e5m2fnuz", below(61440), 61440, 0x80},
        {"e4m3ieee", below(248), 248, 0x78},
        {"e3m4", below(15.75), 15.75, 0x70},
        {"fp16", below(65520), 65520, 0x7C00},
        {"bf16", below(0x1.FFp+127), 0x1.FFp+127, 0x7F80},
        {"tf32", below(0x1.FFEp+127), 0x1.FFEp+127, 0x7F800000},
        {"e8m0", 0x1p127, above(0x1p127), 0xFF},
        {"e3m2", 30, 1e30, 0x1F},
        {"e2m3", 7.75, 1e30, 0x1F},
        {"e2m1", 7, 1e30, 0x7},
        {"int8", 127.5, 1e30, 0x7F},
    };
    for (const Case& c : cases) {
        CAPTURE(c.format);
        const FormatInfo& f = fmt(c.format);
        const Rounding r = default_rounding(f);
        const auto last = static_cast<float>(c.last), first = static_cast<float>(c.first);
        CHECK(encode(f, last, r, Overflow::nonsaturate) == max_code(f));
        CHECK(encode(f, first, r, Overflow::nonsaturate) == c.nonsaturated);
        CHECK(encode(f, first, r, Overflow::saturate) == max_code(f));
        CHECK(encode(f, kInf, r, Overflow::nonsaturate) == c.nonsaturated);
        CHECK(encode(f, kInf, r, Overflow::saturate) == max_code(f));
    }
}

TEST_CASE("overflow keeps its sign and NaN has none") {
    CHECK(encode(fmt("e4m3"), -500.0F, Rounding::nearest, Overflow::nonsaturate) == 0xFF);
    CHECK(encode(fmt("e4m3"), -500.0F) == 0xFE);
    CHECK(encode(fmt("e5m2"), -kInf, Rounding::nearest, Overflow::nonsaturate) == 0xFC);
    CHECK(encode(fmt("e4m3fnuz"), -500.0F, Rounding::nearest, Overflow::nonsaturate) == 0x80);
    CHECK(encode(fmt("e4m3fnuz"), -500.0F) == 0xFF);
    CHECK(encode(fmt("int8"), -1e9F) == 0x81);
    for (const FormatInfo& f : formats()) {
        CAPTURE(f.name);
        CHECK(encode(f, kNan, default_rounding(f)) == canonical_nan(f));
        CHECK(encode(f, -kNan, default_rounding(f), Overflow::nonsaturate) == canonical_nan(f));
    }
}

TEST_CASE("zero, its sign, and the largest value that becomes zero") {
    CHECK(encode(fmt("e4m3"), -0.0F) == 0x80);
    CHECK(encode(fmt("e4m3fnuz"), -0.0F) == 0);
    CHECK(encode(fmt("e4m3fnuz"), -1e-9F) == 0);
    CHECK(encode(fmt("int8"), -0.0F) == 0);
    CHECK(encode(fmt("e4m3"), 0x1p-10F) == 0);
    CHECK(encode(fmt("e4m3"), above(0x1p-10)) == 1);
    CHECK(encode(fmt("e4m3"), -0x1p-10F) == 0x80);
    CHECK(encode(fmt("e5m2"), 0x1p-17F) == 0);
    CHECK(encode(fmt("e5m2"), above(0x1p-17)) == 1);
    CHECK(encode(fmt("e4m3fnuz"), 0x1p-11F) == 0);
    CHECK(encode(fmt("e5m2fnuz"), 0x1p-18F) == 0);
    CHECK(encode(fmt("bf16"), 0x1p-134F) == 0);
    CHECK(encode(fmt("bf16"), above(0x1p-134)) == 1);
}

TEST_CASE("ties go to the even code, TF32's too") {
    const struct {
        float x, rounded;
    } e2m1[] = {{0.25F, 0}, {0.75F, 1}, {1.25F, 1}, {1.75F, 2}, {2.5F, 2}, {3.5F, 4}, {5, 4}};
    for (const auto& c : e2m1) CHECK(decode(fmt("e2m1"), encode(fmt("e2m1"), c.x)) == c.rounded);
    CHECK(decode(fmt("e4m3"), encode(fmt("e4m3"), 1.0625F)) == 1);
    CHECK(decode(fmt("e4m3"), encode(fmt("e4m3"), 17)) == 16);
    CHECK(encode(fmt("tf32"), 1 + 0x1p-11F) == 0x3F800000);
    CHECK(encode(fmt("tf32"), 1 + 3 * 0x1p-11F) == 0x3F804000);
    CHECK(decode(fmt("int8"), encode(fmt("int8"), 2.5F)) == 2);
    CHECK(decode(fmt("int8"), encode(fmt("int8"), -3.5F)) == -4);
    CHECK(decode(fmt("fp16"), encode(fmt("fp16"), 2049)) == 2048);
}

TEST_CASE("toward zero truncates and keeps finite values finite") {
    CHECK(decode(fmt("e4m3"), encode(fmt("e4m3"), 1.124F, Rounding::toward_zero)) == 1);
    CHECK(decode(fmt("e4m3"), encode(fmt("e4m3"), -0.0038F, Rounding::toward_zero)) == -0x1p-9F);
    CHECK(encode(fmt("e4m3"), 1e9F, Rounding::toward_zero, Overflow::nonsaturate) == 0x7E);
    CHECK(encode(fmt("e4m3"), kInf, Rounding::toward_zero, Overflow::nonsaturate) == 0x7F);
    CHECK(encode(fmt("e5m2"), kInf, Rounding::toward_zero, Overflow::saturate) == 0x7B);
    CHECK(decode(fmt("int8"), encode(fmt("int8"), -2.9F, Rounding::toward_zero)) == -2);
}

TEST_CASE("nearest and toward zero agree with a search through the values of the format") {
    for (const FormatInfo& f : formats()) {
        if (width_bits(f) > 8 || f.specials == Specials::scale) continue;
        CAPTURE(f.name);
        const std::vector<CodeValue> values = positive_values(f);
        for (std::size_t i = 0; i + 1 < values.size(); ++i) {
            const double lo = values[i].value, hi = values[i + 1].value;
            for (int k = 0; k < 64; ++k) {
                const double x = lo + (hi - lo) * k / 64;
                CAPTURE(x);
                const bool up = x - lo > hi - x || (x - lo == hi - x && values[i].code % 2 == 1);
                CHECK(encode(f, static_cast<float>(x)) == values[i + (up ? 1 : 0)].code);
                CHECK(encode(f, static_cast<float>(x), Rounding::toward_zero) == values[i].code);
            }
        }
    }
}

TEST_CASE("e8m0 rounds |x| up or toward zero, as CUDA does") {
    const FormatInfo& f = fmt("e8m0");
    const auto up = [&](float x) { return encode(f, x, Rounding::up); };
    const auto down = [&](float x) { return encode(f, x, Rounding::toward_zero); };
    CHECK(up(1) == 127);
    CHECK(up(above(1)) == 128);
    CHECK(down(1.99F) == 127);
    CHECK(up(-3) == 129);
    CHECK(up(0) == 0);
    CHECK(up(0x1p-127F) == 0);
    CHECK(up(above(0x1p-127)) == 1);
    CHECK(down(below(0x1p-126)) == 0);
    CHECK(down(std::numeric_limits<float>::max()) == 0xFE);
    CHECK(encode(f, std::numeric_limits<float>::max(), Rounding::toward_zero, Overflow::nonsaturate) == 0xFE);
    CHECK(encode(f, kInf, Rounding::toward_zero, Overflow::nonsaturate) == 0xFF);
    CHECK(up(kInf) == 0xFE);
}

TEST_CASE("a rounding that the format does not have is refused with those it has") {
    CHECK(error_of([] { encode(fmt("e8m0"), 1, Rounding::nearest); }) ==
          "rounding: unknown e8m0 rounding 'nearest'; valid: up toward-zero");
    CHECK(error_of([] { encode(fmt("e4m3"), 1, Rounding::up); }) ==
          "rounding: unknown e4m3 rounding 'up'; valid: nearest toward-zero stochastic");
}

TEST_CASE("options are parsed by name and unknown ones list the valid ones") {
    CHECK(parse_rounding("toward-zero") == Rounding::toward_zero);
    CHECK(to_string(parse_rounding("stochastic")) == "stochastic");
    CHECK(parse_overflow("nonsaturate") == Overflow::nonsaturate);
    CHECK(error_of([] { parse_rounding("down"); }) ==
          "--round: unknown rounding 'down'; valid: nearest toward-zero stochastic up");
    CHECK(error_of([] { parse_overflow("wrap"); }) ==
          "--overflow: unknown overflow 'wrap'; valid: saturate nonsaturate");
    CHECK(default_overflow(fmt("e8m0")) == Overflow::saturate);
    CHECK(default_overflow(fmt("bf16")) == Overflow::nonsaturate);
}

TEST_CASE("custom formats round on their own grid") {
    const FormatInfo e2m0 = custom_format(2, 0, 1, Specials::finite);  // 0 1 2 4
    CHECK(decode(e2m0, encode(e2m0, 0.5F)) == 0);
    CHECK(decode(e2m0, encode(e2m0, 1.5F)) == 2);  // tie: 1 has the odd code
    CHECK(decode(e2m0, encode(e2m0, 3)) == 2);     // tie: 2 has the even code
    CHECK(decode(e2m0, encode(e2m0, 100)) == 4);
    const FormatInfo odd_bias = custom_format(3, 2, 5, Specials::ieee);
    for (std::uint32_t code = 0; code < 64; ++code) {
        const std::uint32_t expected =
            classify(odd_bias, code) == CodeClass::nan ? canonical_nan(odd_bias) : code;
        CHECK(encode(odd_bias, decode(odd_bias, code), Rounding::nearest, Overflow::nonsaturate) == expected);
    }
}
