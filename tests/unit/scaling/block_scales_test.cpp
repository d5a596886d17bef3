// The worked values of numerics.md 1.4 and numerics.md 1.5, computed with NVIDIA's host functions.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/scaling/quantizer.h"

using namespace fp8lab;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

// One block with the given amax through a recipe: what comes back for it.
float through(const char* recipe, float value) {
    const std::vector<float> in = {value};
    std::vector<float> out(1);
    quantize(cast_plan(parse_recipe(recipe), TensorClass::x), in, out, {.rows = 1, .cols = 1});
    return out[0];
}

}  // namespace

TEST_CASE("MX scale codes of E4M3 by the three rules") {
    const FormatInfo& e4m3 = find_format("e4m3");
    struct Row {
        float amax;
        std::uint32_t floor, even, up;
        float after_floor, after_up;
    };
    for (const Row& row :
         {Row{1.75F, 119, 119, 119, 1.75F, 1.75F}, Row{1.7500001F, 119, 119, 120, 1.75F, 1.75F},
          Row{1.9F, 119, 119, 120, 1.75F, 1.875F}, Row{126, 125, 126, 126, 112, 128},
          Row{150, 126, 126, 126, 144, 144}, Row{500, 127, 128, 128, 448, 512}}) {
        CAPTURE(row.amax);
        CHECK(mx_scale_code(row.amax, e4m3, MxRule::floor) == row.floor);
        CHECK(mx_scale_code(row.amax, e4m3, MxRule::even) == row.even);
        CHECK(mx_scale_code(row.amax, e4m3, MxRule::up) == row.up);
        CHECK(through("mxfp8:mxrule=floor", row.amax) == row.after_floor);
        CHECK(through("mxfp8", row.amax) == row.after_up);
    }
}

TEST_CASE("MX scale codes at the ends: zero, Inf, NaN, the smallest and the largest floats") {
    const FormatInfo& e4m3 = find_format("e4m3");
    for (const MxRule rule : {MxRule::up, MxRule::floor, MxRule::even}) {
        CHECK(mx_scale_code(0, e4m3, rule) == 0x00);
        CHECK(mx_scale_code(kInf, e4m3, rule) == 0xFE);
        CHECK(mx_scale_code(kNan, e4m3, rule) == 0xFF);
        CHECK(mx_scale_code(std::numeric_limits<float>::denorm_min(), e4m3, rule) == 0x00);
    }
    // FLT_MAX / 448 is just above 2^119 (1.14 x 2^119); floor(log2 FLT_MAX) - 8 = 119; its significand rounds
    // up.
    const float largest = std::numeric_limits<float>::max();
    CHECK(mx_scale_code(largest, e4m3, MxRule::up) == 120 + 127);
    CHECK(mx_scale_code(largest, e4m3, MxRule::floor) == 119 + 127);
    CHECK(mx_scale_code(largest, e4m3, MxRule::even) == 120 + 127);
    // 2^-119 is the amax whose FLOOR scale is the smallest, 2^-127; a float below stays there.
    CHECK(mx_scale_code(std::ldexp(1.0F, -118), e4m3, MxRule::floor) == 1);
    CHECK(mx_scale_code(std::ldexp(1.0F, -119), e4m3, MxRule::floor) == 0);
    CHECK(mx_scale_code(std::ldexp(1.0F, -130), e4m3, MxRule::floor) == 0);
}

TEST_CASE(
    "MX scale codes agree with the definitions evaluated in float64, for every element and amax exponent") {
    for (const char* name : {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1"}) {
        CAPTURE(std::string(name));
        const FormatInfo& element = find_format(name);
        const double max = max_finite(element);
        const int emax = std::ilogb(max);
        const auto code = [](int exponent) {
            return static_cast<std::uint32_t>(std::clamp(exponent, -127, 127) + 127);
        };
        for (int exponent = -126; exponent <= 127; ++exponent)
            for (const double significand :
                 {1.0, 1.25, 1.4375, 1.5, 1.5625, 1.74, 1.76, 1.87, 1.88, 1.93, 1.94, 1.9999}) {
                const float amax = static_cast<float>(std::ldexp(significand, exponent));
                CAPTURE(amax);
                int power = 0;  // amax / max = fraction 2^power, fraction in [1/2, 1)
                const double fraction = std::frexp(static_cast<double>(amax) / max, &power);
                const double unit = std::ldexp(1.0, -element.mantissa_bits);
                const bool rounds_up = std::nearbyint(significand / unit) * unit >= 2;
                CHECK(mx_scale_code(amax, element, MxRule::up) == code(fraction == 0.5 ? power - 1 : power));
                CHECK(mx_scale_code(amax, element, MxRule::floor) == code(exponent - emax));
                CHECK(mx_scale_code(amax, element, MxRule::even) == code(exponent + rounds_up - emax));
            }
    }
}

TEST_CASE("the published E4M3 complaint of the floor rule: 957 becomes 896 beside 959.6") {
    const std::vector<float> in = {959.6F, 957};
    std::vector<float> out(2);
    quantize(cast_plan(parse_recipe("mxfp8:mxrule=floor"), TensorClass::x), in, out, {.rows = 1, .cols = 2});
    CHECK(out[1] == 896);
}

TEST_CASE("MXFP4 of the NVFP4 example: 0.5 and saturation by floor, 1.0 by up") {
    const FormatInfo& e2m1 = find_format("e2m1");
    CHECK(mx_scale_code(3.1F, e2m1, MxRule::floor) == 126);
    CHECK(mx_scale_code(3.1F, e2m1, MxRule::up) == 127);
    CHECK(through("mxfp4:mxrule=floor", 3.1F) == 3);
    CHECK(through("mxfp4", 3.1F) == 3);
}

TEST_CASE("the worked NVFP4 example") {
    const Nvfp4Scales scales = nvfp4_scales(10, 3.1F);
    CHECK(scales.encode_scale == doctest::Approx(268.8).epsilon(1e-7));
    CHECK(decode(find_format("e4m3"), scales.block_code) == 144);
    CHECK(1 / scales.block_factor == doctest::Approx(0.535714).epsilon(1e-6));
    // Two blocks: the first gives the tensor its amax of 10, the second is the block of the example.
    std::vector<float> in(32, 0.0F), out(32);
    in[3] = 10;
    in[20] = -3.1F;
    const auto result =
        quantize(cast_plan(parse_recipe("nvfp4"), TensorClass::x), in, out, {.rows = 1, .cols = 32});
    CHECK(result.scale == scales.encode_scale);
    CHECK(result.scales == std::vector<float>{nvfp4_scales(10, 10).block_factor, scales.block_factor});
    CHECK(out[20] == doctest::Approx(-3.2142857).epsilon(1e-6));
    CHECK(out[3] == doctest::Approx(10).epsilon(1e-6));
    CHECK(out[0] == 0);
}

TEST_CASE("NVFP4 edge cases: a zero tensor, a zero block, a block too small for its E4M3 scale") {
    CHECK(nvfp4_scales(0, 0).encode_scale == 1);
    CHECK(nvfp4_scales(0, 0).block_factor == 0);
    CHECK(nvfp4_scales(1e-37F, 1e-37F).encode_scale == std::numeric_limits<float>::max());
    std::vector<float> in(48, 0.0F), out(48, 5.0F);
    in[0] = 1;
    in[40] = 1e-6F;  // its block scale 448e-6 is below half of E4M3's smallest subnormal
    const auto result =
        quantize(cast_plan(parse_recipe("nvfp4"), TensorClass::x), in, out, {.rows = 1, .cols = 48});
    CHECK(out[0] == doctest::Approx(1).epsilon(1e-6));
    for (std::size_t i = 1; i < 48; ++i) CHECK(out[i] == 0);
    CHECK(result.stats.underflow == 1);
    CHECK(result.stats.overflow == 0);
}

TEST_CASE("NVFP4 targets: scales by hand, and what each block's amax becomes") {
    const FormatInfo& e4m3 = find_format("e4m3");
    // Tensor amax 4 and target 4: S = 256 x 6 / 4 = 384, s = 4 x 384 / 4 = 384, one unit is 384 x 4 / 1536 = 1.
    const Nvfp4Scales four = nvfp4_scales(4, 4, Nvfp4Target::four, 4),
                      six = nvfp4_scales(4, 4, Nvfp4Target::four, 6);
    CHECK(four.encode_scale == 384);
    CHECK(decode(e4m3, four.block_code) == 384);
    CHECK(four.block_factor == doctest::Approx(1).epsilon(1e-6));
    CHECK(decode(e4m3, six.block_code) == 256);
    CHECK(nvfp4_scales(4, 4).encode_scale == 672);
    CHECK(decode(e4m3, nvfp4_scales(4, 4).block_code) == 448);
    // Blocks: exact with 4; exact with 6; zeros, where neither is better.
    std::vector<float> in(48, 0.0F);
    const float with_four[] = {4, 3, 2, 1, -1.5F, 0.5F}, with_six[] = {3, 1, 1.5F, -0.5F, 0.25F};
    std::copy(std::begin(with_four), std::end(with_four), in.begin());
    std::copy(std::begin(with_six), std::end(with_six), in.begin() + 16);
    const CastPlan plan = cast_plan(parse_recipe("nvfp4:target=4or6"), TensorClass::x);
    const QuantizeRequest request{.rows = 1, .cols = 48};
    const Nvfp4Blocks blocks = nvfp4_blocks(plan, in, request);
    CHECK(blocks.targets == std::vector<std::uint8_t>{4, 6, 6});
    CHECK(blocks.tensor_amax == 4);
    CHECK(blocks.tensor_scale == 384);
    CHECK(blocks.units[0] == 1);
    CHECK(blocks.units[1] == 0.5F);
    CHECK(blocks.units[2] == 0);
    CHECK(blocks.clipped == std::vector<std::uint32_t>{0, 0, 0});
    std::vector<float> out(48);
    quantize(plan, in, out, request);
    CHECK(out == in);
    in[40] = std::numeric_limits<float>::quiet_NaN();  // ignored in the amax; no error is smaller than NaN
    CHECK(nvfp4_blocks(plan, in, request).targets == std::vector<std::uint8_t>{4, 6, 6});
    in[40] = std::numeric_limits<float>::infinity();
    CHECK(nvfp4_blocks(plan, in, request).targets[2] == 6);
    CHECK(nvfp4_blocks(plan, in, request).tensor_scale == 1);
    CHECK_THROWS_AS(nvfp4_blocks(plan, in, {.rows = 2, .cols = 48}), Error);
    CHECK_THROWS_AS(nvfp4_blocks(cast_plan(parse_recipe("mxfp4"), TensorClass::x), in, request), Error);
}

TEST_CASE(
    "4or6: no block is worse than with 4 or with 6 under the same tensor scale, and clipped elements are "
    "counted") {
    std::vector<float> in(64 * 96);
    Rng(5).fill_normal(in);
    const QuantizeRequest request{.rows = 64, .cols = 96, .with_stats = false};
    const auto cast = [&](const char* recipe) {
        std::vector<float> out(in.size());
        quantize(cast_plan(parse_recipe(recipe), TensorClass::x), in, out, request);
        return out;
    };
    const auto error = [&](const std::vector<float>& out, std::size_t block) {
        double sum = 0;
        for (std::size_t i = 16 * block; i < 16 * block + 16; ++i)
            sum += std::pow(static_cast<double>(in[i]) - static_cast<double>(out[i]), 2);
        return sum;
    };
    const auto four = cast("nvfp4:target=4"), chosen = cast("nvfp4:target=4or6"), plain = cast("nvfp4");
    const CastPlan plan = cast_plan(parse_recipe("nvfp4:target=4or6"), TensorClass::x);
    const Nvfp4Blocks blocks = nvfp4_blocks(plan, in, request);
    std::size_t fours = 0, clipped = 0, by_hand = 0;
    double total = 0, total_plain = 0;
    for (std::size_t b = 0; b < in.size() / 16; ++b) {
        CHECK(error(chosen, b) <= error(four, b));
        if (blocks.targets[b] == 4) CHECK(error(chosen, b) == error(four, b));
        fours += blocks.targets[b] == 4;
        clipped += blocks.clipped[b];
        for (std::size_t i = 16 * b; i < 16 * b + 16; ++i)
            by_hand += std::fabs(in[i]) / blocks.units[b] > 6.00001F;
        total += error(chosen, b), total_plain += error(plain, b);
    }
    CHECK(fours > 0);
    CHECK(fours < in.size() / 16);
    CHECK(total < total_plain);
    CHECK(clipped == by_hand);
    CHECK(clipped > 0);
}
