// The vector kernels against the scalar codec, on every vector target that this machine has.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/formats/codec.h"
#include "core/formats/golden.h"

using namespace fp8lab;

namespace {

struct BestTargetAfterwards {
    ~BestTargetAfterwards() { force_vector_target(""); }
};

std::vector<FormatInfo> all_formats() {
    std::vector<FormatInfo> all(formats().begin(), formats().end());
    all.push_back(custom_format(2, 0, 1, Specials::finite));
    all.push_back(custom_format(3, 2, 5, Specials::ieee));
    all.push_back(custom_format(1, 4, -64, Specials::fnuz));
    all.push_back(custom_format(5, 7, 127, Specials::fn));
    all.push_back(custom_format(8, 10, 127, Specials::ieee));
    return all;
}

// Golden edges, the neighbourhood of every midpoint of `format`, and random patterns; an odd number of them.
std::vector<float> inputs(const FormatInfo& format) {
    std::vector<float> values;
    for (const GoldenTable::Row& row : golden_edges().rows) values.push_back(std::bit_cast<float>(row.key));
    const std::uint32_t step = width_bits(format) > 8 ? 97 : 1;
    for (std::uint32_t code = 0; code + 1 < max_code(format) && width_bits(format) <= 16; code += step) {
        const auto middle = static_cast<float>((value_of(format, code) + value_of(format, code + 1)) / 2);
        for (const float x : {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, 1e30F)}) {
            values.push_back(x);
            values.push_back(-x);
        }
    }
    Rng rng(7);
    for (int i = 0; i < 20000; ++i) values.push_back(std::bit_cast<float>(rng.bits()));
    for (int i = 0; i < 5000; ++i) values.push_back(rng.normal());
    if (values.size() % 2 == 0) values.pop_back();
    return values;
}

bool same(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }

template <class Code>
void compare(const FormatInfo& f, std::span<const float> values, const CastOptions& options) {
    std::vector<Code> codes(values.size());
    std::vector<float> decoded(values.size()), quantized(values.size());
    encode(f, values, std::span(codes), options);
    decode(f, std::span<const Code>(codes), decoded);
    quantize(f, values, quantized, options);
    const float scale_inv = 1.0F / options.scale;
    std::size_t differences = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::uint32_t bits_i = random_bits(options.seed, options.stream, options.first + i);
        const std::uint32_t code =
            encode(f, values[i] * options.scale, options.rounding, options.overflow, bits_i);
        if (codes[i] == code && same(decoded[i], decode(f, code)) &&
            same(quantized[i], decode(f, code) * scale_inv)) {
            continue;
        }
        if (++differences > 3) continue;
        MESSAGE(std::string(f.name) << " x=" << values[i] << " scalar " << code << " vector " << codes[i]
                                    << " decoded " << decoded[i] << " quantized " << quantized[i]);
    }
    CHECK(differences == 0);
}

void compare_any(const FormatInfo& f, std::span<const float> values, const CastOptions& options) {
    switch (storage_bytes(f)) {
        case 1:
            return compare<std::uint8_t>(f, values, options);
        case 2:
            return compare<std::uint16_t>(f, values, options);
        default:
            return compare<std::uint32_t>(f, values, options);
    }
}

}  // namespace

TEST_CASE("vector equals scalar for every format, rounding, overflow and target") {
    const BestTargetAfterwards restore;
    for (const FormatInfo& f : all_formats()) {
        const std::vector<float> values = inputs(f);
        for (const char* target : vector_targets()) {
            force_vector_target(target);
            for (const Rounding rounding : roundings(f)) {
                for (const Overflow overflow : {Overflow::saturate, Overflow::nonsaturate}) {
                    CAPTURE(target);
                    CAPTURE(f.name);
                    CAPTURE(f.bias);
                    CAPTURE(to_string(rounding));
                    CAPTURE(to_string(overflow));
                    compare_any(f, values, {rounding, overflow, 1.0F, 42, 3, 1});
                    compare_any(f, values, {rounding, overflow, 0.37F, 42, 3, 2});
                }
            }
        }
    }
}

TEST_CASE("vector equals scalar for every length and alignment") {
    const BestTargetAfterwards restore;
    std::vector<float> values(300);
    Rng(5).fill_normal(values, 100.0F);
    for (const char* target : vector_targets()) {
        force_vector_target(target);
        for (std::size_t offset = 0; offset < 4; ++offset) {
            for (std::size_t n = 0; n + offset <= 140; ++n) {
                const std::span<const float> part(values.data() + offset, n);
                compare_any(find_format("e4m3"), part,
                            {Rounding::stochastic, Overflow::saturate, 1.0F, 1, 2, 3 + offset});
                compare_any(find_format("bf16"), part, {.overflow = Overflow::nonsaturate});
                compare_any(find_format("tf32"), part, {.overflow = Overflow::nonsaturate});
            }
        }
    }
}

TEST_CASE("a span is written to its end and not beyond, and may be quantised in place") {
    std::vector<float> values(1001);
    Rng(6).fill_normal(values);
    std::vector<std::uint8_t> codes(1004, 0xAA);
    encode(find_format("e5m2"), values, std::span(codes).subspan(1, 1001));
    CHECK(codes[0] == 0xAA);
    CHECK(codes[1002] == 0xAA);
    CHECK(codes[1001] == encode(find_format("e5m2"), values.back()));
    std::vector<float> expected(values.size());
    quantize(find_format("e5m2"), values, expected, {.scale = 3.0F});
    quantize(find_format("e5m2"), values, values, {.scale = 3.0F});
    CHECK(values == expected);
}

TEST_CASE("a span long enough to be stored around the caches has the same codes") {
    const std::size_t n = (std::size_t{8} << 20) + 333;
    std::vector<float> values(n);
    for (std::size_t i = 0; i < n; ++i) {
        values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(i) * 2654435761U);
    }
    const BestTargetAfterwards restore;
    for (const char* target : vector_targets())
        for (const char* name : {"e4m3", "e4m3fnuz"}) {
            force_vector_target(target);
            CAPTURE(target);
            const FormatInfo& f = find_format(name);
            std::vector<std::uint8_t> whole(n + 1, 0xAA), parts(n);
            encode(f, values, std::span(whole).subspan(1));
            for (std::size_t begin = 0; begin < n; begin += 100000) {
                const std::size_t size = std::min<std::size_t>(100000, n - begin);
                encode(f, std::span(values).subspan(begin, size), std::span(parts).subspan(begin, size));
            }
            CHECK(whole[0] == 0xAA);
            CHECK(std::equal(parts.begin(), parts.end(), whole.begin() + 1));
        }
}

TEST_CASE("stochastic casts depend on the element's index only, not on how a span is cut") {
    std::vector<float> values(10000);
    Rng(8).fill_normal(values);
    const FormatInfo& f = find_format("e4m3");
    const CastOptions options{.rounding = Rounding::stochastic, .seed = 9, .stream = 1, .first = 6};
    std::vector<std::uint8_t> whole(values.size()), parts(values.size()), other(values.size());
    encode(f, values, std::span(whole), options);
    for (std::size_t begin = 0; begin < values.size();) {
        const std::size_t n = std::min<std::size_t>(begin % 4099 + 1, values.size() - begin);
        CastOptions part = options;
        part.first += begin;
        encode(f, std::span(values).subspan(begin, n), std::span(parts).subspan(begin, n), part);
        begin += n;
    }
    CHECK(parts == whole);
    encode(f, values, std::span(other),
           {.rounding = Rounding::stochastic, .seed = 10, .stream = 1, .first = 6});
    CHECK(other != whole);
}

TEST_CASE("amax is the largest magnitude, ignores NaN and takes Inf") {
    const BestTargetAfterwards restore;
    const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
    for (const char* target : vector_targets()) {
        force_vector_target(target);
        CAPTURE(target);
        CHECK(amax({}) == 0);
        for (std::size_t n = 1; n < 150; ++n) {
            std::vector<float> values(n, nan);
            CHECK(amax(values) == 0);
            values[n / 2] = -3;
            values[n - 1] = n == 1 ? -3.0F : 2.0F;
            if (n == 2) values = {2, -3};
            CHECK(amax(values) == 3);
            values[n / 3] = -inf;
            CHECK(amax(values) == inf);
        }
        CHECK(amax(std::vector<float>{-50, 2}) == 50);
        CHECK(amax(std::vector<float>{0x1p-149F}) == 0x1p-149F);
    }
}

TEST_CASE("sizes, storage types and targets that do not fit are refused") {
    const auto error_of = [](const auto& act) -> std::string {
        try {
            act();
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::usage);
            return error.what();
        }
        return "";
    };
    std::vector<float> values(3);
    std::vector<std::uint8_t> bytes(2);
    std::vector<std::uint16_t> shorts(3);
    CHECK(error_of([&] { encode(find_format("e4m3"), values, std::span(bytes)); }) ==
          "cast: 3 values but room for 2 codes");
    CHECK(error_of([&] { encode(find_format("e4m3"), values, std::span(shorts)); }) ==
          "cast: e4m3 codes take 1 byte(s) each, not 2");
    CHECK(error_of([&] { quantize(find_format("e4m3"), values, std::span(values).first(2)); }) ==
          "quantize: in and out differ in size");
    CHECK(error_of([] { force_vector_target("AVX9"); }).find("unknown target 'AVX9'; valid:") !=
          std::string::npos);
}

TEST_CASE("normals agree on every vector target, but for neighbours in one of many millions") {
    const BestTargetAfterwards restore;
    constexpr std::size_t kCount = 1'000'001;
    std::vector<float> best(kCount), found(kCount);
    Rng(3, 4).fill_normal(best, 0.5F);
    for (const char* target : vector_targets()) {
        CAPTURE(target);
        force_vector_target(target);
        Rng(3, 4).fill_normal(found, 0.5F);
        std::size_t others = 0;
        for (std::size_t i = 0; i < kCount; ++i) {
            others += found[i] != best[i];
            const bool near =
                std::nextafter(best[i], -9.0F) <= found[i] && found[i] <= std::nextafter(best[i], 9.0F);
            REQUIRE(near);
        }
        CHECK(others < 5);
    }
}
