#include "core/scaling/quantizer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/threads/parallel.h"

using namespace fp8lab;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
using Values = std::vector<float>;

Values normal(std::size_t n, std::uint64_t seed, float sigma = 1) {
    Values values(n);
    Rng(seed).fill_normal(values, sigma);
    return values;
}

struct Quantized {
    Values out;
    QuantizeResult result;
};

Quantized run(const char* recipe, const Values& in, QuantizeRequest request,
              TensorClass tensor = TensorClass::x) {
    Quantized q{Values(in.size()), {}};
    q.result = quantize(cast_plan(parse_recipe(recipe), tensor), in, q.out, request);
    return q;
}

// The same thing element by element: which block an element is in, the amax of that block, one scalar encode.
Values reference(const char* recipe, const Values& in, std::size_t rows, std::size_t cols, std::size_t height,
                 std::size_t width) {
    const Recipe r = parse_recipe(recipe);
    const FormatInfo& format = *r.fwd;
    std::map<std::pair<std::size_t, std::size_t>, float> amaxes;
    for (std::size_t i = 0; i < rows * cols; ++i) {
        float& a = amaxes[{i / cols / height, i % cols / width}];
        a = std::max(a, std::fabs(in[i]));
    }
    Values out(in.size());
    for (std::size_t i = 0; i < rows * cols; ++i) {
        const float a = amaxes[{i / cols / height, i % cols / width}];
        float scale =
            a > 0 ? static_cast<float>(max_finite(format)) / a / std::exp2(static_cast<float>(r.margin)) : 1;
        if (r.granularity == Granularity::block32)
            scale = 1 / decode(find_format("e8m0"), mx_scale_code(a, format, r.mx_rule));
        if (r.pow2) scale = std::exp2(std::floor(std::log2(scale)));
        out[i] = decode(format, encode(format, in[i] * scale)) * (1 / scale);
    }
    return out;
}

}  // namespace

TEST_CASE("a plan is the part of a recipe that concerns one tensor class") {
    const CastPlan x = cast_plan(parse_recipe("delayed"), TensorClass::x);
    CHECK(x.format->name == "e4m3");
    CHECK(x.scaled);
    CHECK(cast_plan(parse_recipe("delayed"), TensorClass::dy).format->name == "e5m2");
    CHECK(cast_plan(parse_recipe("block128"), TensorClass::w).square_blocks);
    CHECK_FALSE(cast_plan(parse_recipe("block128"), TensorClass::dy).square_blocks);
    CHECK(cast_plan(parse_recipe("block128"), TensorClass::x).pow2);
    CHECK(cast_plan(parse_recipe("nvfp4"), TensorClass::dy).rounding == Rounding::stochastic);
    CHECK(cast_plan(parse_recipe("nvfp4"), TensorClass::w).rounding == Rounding::nearest);
    for (const char* plain : {"fp32", "bf16", "unscaled"})
        CHECK_FALSE(cast_plan(parse_recipe(plain), TensorClass::x).scaled);
    // Wide formats are cast as hardware casts them: no scale, overflow to Inf.
    const CastPlan wide = cast_plan(parse_recipe("mxfp8:bwd=bf16"), TensorClass::dy);
    CHECK_FALSE(wide.scaled);
    CHECK(wide.granularity == Granularity::tensor);
    CHECK(wide.overflow == Overflow::nonsaturate);
}

TEST_CASE("every granularity agrees with an element by element reference, partial blocks included") {
    struct Case {
        const char* recipe;
        Along along;
        TensorClass tensor;
        std::size_t height, width;  // of a block
    };
    const std::size_t rows = 150, cols = 300;
    for (const Case& c : {Case{"current", Along::cols, TensorClass::x, rows, cols},
                          Case{"int8", Along::rows, TensorClass::x, rows, cols},
                          Case{"rowwise", Along::cols, TensorClass::x, 1, cols},
                          Case{"rowwise", Along::rows, TensorClass::x, rows, 1},
                          Case{"block128", Along::cols, TensorClass::x, 1, 128},
                          Case{"block128", Along::rows, TensorClass::x, 128, 1},
                          Case{"block128:pow2=0", Along::cols, TensorClass::w, 128, 128},
                          Case{"block128:pow2=0", Along::rows, TensorClass::w, 128, 128},
                          Case{"current:margin=2", Along::cols, TensorClass::x, rows, cols},
                          Case{"int8:margin=1", Along::cols, TensorClass::x, rows, cols},
                          Case{"rowwise:margin=-1", Along::cols, TensorClass::x, 1, cols},
                          Case{"block128:margin=3", Along::cols, TensorClass::w, 128, 128},
                          Case{"mxfp8", Along::cols, TensorClass::x, 1, 32},
                          Case{"mxfp8:mxrule=floor", Along::rows, TensorClass::w, 32, 1},
                          Case{"mxfp6-e2m3:mxrule=even", Along::cols, TensorClass::x, 1, 32},
                          Case{"mxfp6-e3m2", Along::rows, TensorClass::x, 32, 1},
                          Case{"mxfp4", Along::cols, TensorClass::x, 1, 32}}) {
        CAPTURE(std::string(c.recipe));
        CAPTURE(static_cast<int>(c.along));
        Values in = normal(rows * cols, 7);
        for (std::size_t i = 0; i < in.size(); ++i) in[i] *= std::exp2(static_cast<float>(i / cols % 7) - 3);
        const Quantized q = run(c.recipe, in, {.rows = rows, .cols = cols, .along = c.along}, c.tensor);
        CHECK(q.out == reference(c.recipe, in, rows, cols, c.height, c.width));
        const std::size_t blocks = ((rows + c.height - 1) / c.height) * ((cols + c.width - 1) / c.width);
        CHECK(q.result.scales.size() == (blocks == 1 ? 0 : blocks));
    }
}

TEST_CASE("quantising along rows is quantising the transpose along columns") {
    const std::size_t rows = 70, cols = 50;
    const Values in = normal(rows * cols, 3);
    Values transposed(in.size());
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < cols; ++c) transposed[c * rows + r] = in[r * cols + c];
    for (const char* recipe : {"nvfp4", "mxfp8", "rowwise", "block128"}) {
        CAPTURE(std::string(recipe));
        const Quantized a = run(recipe, in, {.rows = rows, .cols = cols, .along = Along::rows});
        const Quantized b = run(recipe, transposed, {.rows = cols, .cols = rows});
        for (std::size_t r = 0; r < rows; ++r)
            for (std::size_t c = 0; c < cols; ++c) REQUIRE(a.out[r * cols + c] == b.out[c * rows + r]);
        CHECK(a.result.stats.underflow == b.result.stats.underflow);
    }
}

TEST_CASE("a given tensor scale is used, without one the tensor's own amax decides") {
    const Values in = {1, 2, -4, 0.5F};
    CHECK(run("delayed", in, {.rows = 1, .cols = 4, .tensor_scale = 8}).result.scale == 8);
    CHECK(run("current", in, {.rows = 1, .cols = 4}).result.scale == 112);
    CHECK(run("current", in, {.rows = 1, .cols = 4}, TensorClass::dy).result.scale == 14336);
    CHECK(run("int8", in, {.rows = 1, .cols = 4}).result.scale == 127.0F / 4);
    CHECK(run("unscaled", in, {.rows = 1, .cols = 4, .tensor_scale = 8}).result.scale == 1);
    for (const Values& special : {Values{0, 0, 0, 0}, Values{1, kInf, 2, 3}, Values{-kInf, kNan, 2, 3}})
        CHECK(run("current", special, {.rows = 1, .cols = 4}).result.scale == 1);
    CHECK(run("current", {kNan, 2, 1, 0}, {.rows = 1, .cols = 4}).result.scale == 224);  // fmaxf ignores NaN
}

TEST_CASE("a percentile of |x| is the one by nearest rank, and the scale is made of it") {
    for (const std::size_t n : {1, 2, 7, 100, 1000, 70001})
        for (const double p : {50.0, 99.0, 99.9, 99.99}) {
            const Values x = normal(n, 5);
            CastPlan plan = cast_plan(parse_recipe("current:amax=p" + std::to_string(p)), TensorClass::x);
            Values sizes = x;
            for (float& v : sizes) v = std::fabs(v);
            std::ranges::sort(sizes);
            // The smallest value that so many percent of all do not exceed.
            std::size_t at = 0;
            while (static_cast<double>(at + 1) * 100 < p * static_cast<double>(n) * (1 - 1e-12)) ++at;
            CHECK(scale_amax(plan, x) == sizes[at]);
            const Quantized q =
                run(("current:amax=p" + std::to_string(p)).c_str(), x, {.rows = 1, .cols = n});
            CHECK(q.result.scale == 448 / sizes[at]);
            CHECK(q.result.stats.amax == sizes.back());  // the record still tells the amax
        }
    // NaN is above all, so that a tensor with one gets no scale from the rest of it.
    const Values bad = {1, 2, kNan, 3};
    CHECK(scale_amax(cast_plan(parse_recipe("current:amax=p99"), TensorClass::x), bad) == kInf);
}

TEST_CASE("the statistics of a cast, counted by hand") {
    // scale 1, e4m3: 2^-10 is a tie that goes to 0, 464 stays, above it saturates.
    const float above = std::nextafter(464.0F, kInf);
    const Values in = {0, 1, 0x1p-10F, -0x1p-11F, 460, 464, -above, 1e6F, kInf, kNan, 1.0625F, -0.0F};
    const Quantized q = run("unscaled", in, {.rows = 3, .cols = 4});
    CHECK(q.result.stats.n == 12);
    CHECK(q.result.stats.amax == kInf);
    CHECK(q.result.stats.underflow == 2);
    CHECK(q.result.stats.overflow == 3);  // -above, 1e6 and Inf
    CHECK(q.result.stats.nonfinite == 2);
    double signal = 0, noise = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
        if (!std::isfinite(in[i])) continue;
        const double x = static_cast<double>(in[i]), error = x - static_cast<double>(q.out[i]);
        signal += x * x;
        noise += error * error;
    }
    CHECK(q.result.stats.signal == doctest::Approx(signal).epsilon(1e-14));
    CHECK(q.result.stats.noise == doctest::Approx(noise).epsilon(1e-6));
    CHECK(q.out[8] == 448);
    CHECK(std::isnan(q.out[9]));
}

TEST_CASE("E5M2 overflows from 61440 on, the tie included") {
    const Values in = {std::nextafter(61440.0F, 0.0F), 61440, -61440, 57344};
    CHECK(run("unscaled", in, {.rows = 1, .cols = 4}, TensorClass::dy).result.stats.overflow == 2);
}

TEST_CASE("amax * fl(448 / amax) may lie an ulp above 448, which is no overflow") {
    int above = 0;
    for (int i = 0; i < 1000; ++i) {
        const float amax = 1 + static_cast<float>(i) / 1000;
        const Quantized q = run("current", {amax, 0.1F}, {.rows = 1, .cols = 2});
        above += amax * q.result.scale > 448;
        CHECK(q.result.stats.overflow == 0);
    }
    CHECK(above > 50);  // the case does occur: about one amax in ten
}

TEST_CASE("NaN, Inf and zeros in MX blocks stay in their block") {
    Values in(96, 1.0F);
    in[5] = kNan;
    in[40] = -kInf;
    std::fill(in.begin() + 64, in.end(), 0.0F);
    const Quantized q = run("mxfp8", in, {.rows = 1, .cols = 96});
    for (std::size_t i = 0; i < 32; ++i) CHECK(std::isnan(q.out[i]));
    CHECK(q.out[40] == -kInf);
    CHECK(q.out[41] == 0);  // 2^-127 of the largest scale
    for (std::size_t i = 64; i < 96; ++i) CHECK(q.out[i] == 0);
    const Quantized column = run("mxfp8", in, {.rows = 96, .cols = 1, .along = Along::rows});
    for (std::size_t i = 0; i < 96; ++i) {
        CHECK(std::isnan(column.out[i]) == std::isnan(q.out[i]));
        if (i >= 32) CHECK(column.out[i] == q.out[i]);
    }
    CHECK(q.result.stats.nonfinite == 2);
    CHECK(q.result.stats.underflow == 31);
    CHECK(q.result.stats.amax == kInf);
}

TEST_CASE("fp32 copies every bit, bf16 rounds to nearest and overflows to Inf") {
    const Values in = {1.00390625F, -0.0F, 3.4e38F, kInf, 1e-45F, 0.1F};
    const Quantized same = run("fp32", in, {.rows = 2, .cols = 3});
    CHECK(same.out == in);
    CHECK(std::signbit(same.out[1]));
    CHECK(same.result.stats.overflow == 0);
    CHECK(same.result.stats.sqnr_db() == static_cast<double>(kInf));
    const Quantized bf16 = run("bf16", in, {.rows = 2, .cols = 3});
    CHECK(bf16.out[0] == 1);  // a tie, to even
    CHECK(bf16.out[2] == kInf);
    CHECK(bf16.out[4] == 0);
    CHECK(bf16.result.stats.underflow == 1);
}

TEST_CASE("the result may overwrite the input") {
    for (const char* recipe : {"current", "rowwise", "mxfp8", "nvfp4", "bf16", "fp32"}) {
        CAPTURE(std::string(recipe));
        const Values in = normal(5000, 11);
        const QuantizeRequest request{.rows = 50, .cols = 100};
        const Quantized apart = run(recipe, in, request);
        Values same = in;
        const auto result = quantize(cast_plan(parse_recipe(recipe), TensorClass::x), same, same, request);
        CHECK(same == apart.out);
        CHECK(result.stats.noise == apart.result.stats.noise);
        CHECK(result.stats.underflow == apart.result.stats.underflow);
    }
}

TEST_CASE("results do not depend on the number of threads, statistics included") {
    const int before = threads();
    const std::size_t rows = 700, cols = 301;
    const Values in = normal(rows * cols, 5);
    for (const char* recipe : {"current", "rowwise:round=stochastic", "block128", "mxfp4", "nvfp4"})
        for (const Along along : {Along::cols, Along::rows}) {
            CAPTURE(std::string(recipe));
            const QuantizeRequest request{.rows = rows, .cols = cols, .along = along, .seed = 9};
            set_threads(1);
            const Quantized one = run(recipe, in, request);
            set_threads(3);
            const Quantized three = run(recipe, in, request);
            CHECK(one.out == three.out);
            CHECK(one.result.scales == three.result.scales);
            CHECK(one.result.stats.signal == three.result.stats.signal);
            CHECK(one.result.stats.noise == three.result.stats.noise);
            CHECK(one.result.stats.underflow == three.result.stats.underflow);
        }
    set_threads(before);
}

TEST_CASE("stochastic rounding draws by element index, whatever the direction of the blocks") {
    // All elements 1.03 under scale 1: up to 1.125 where the element's own random bits say so.
    const std::size_t rows = 64, cols = 48;
    const Values in(rows * cols, 1.03F);
    const FormatInfo& e4m3 = find_format("e4m3");
    const Quantized q =
        run("unscaled:round=stochastic", in, {.rows = rows, .cols = cols, .seed = 4, .stream = 2});
    int up = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
        const float expected =
            decode(e4m3, encode(e4m3, 1.03F, Rounding::stochastic, Overflow::saturate, random_bits(4, 2, i)));
        CHECK(q.out[i] == expected);
        up += q.out[i] > 1;
    }
    CHECK(up > static_cast<int>(in.size()) / 5);
    CHECK(up < static_cast<int>(in.size()) * 3 / 10);
    Values tilted = in;
    tilted[0] = 448;  // block (0, 0) apart, the others keep amax 1.03 in both directions
    const QuantizeRequest request{.rows = rows, .cols = cols, .along = Along::rows, .seed = 4};
    const Quantized by_rows = run("mxfp8:round=stochastic", tilted, request);
    const float scale = by_rows.result.scales.back();
    for (std::size_t i = cols * 32; i < in.size(); ++i)
        CHECK(by_rows.out[i] == decode(e4m3, encode(e4m3, 1.03F * scale, Rounding::stochastic,
                                                    Overflow::saturate, random_bits(4, 0, i))) /
                                    scale);
}

TEST_CASE("without statistics the amax is still there") {
    const Values in = {1, -3, kNan, 2};
    const Quantized q = run("delayed", in, {.rows = 2, .cols = 2, .tensor_scale = 2, .with_stats = false});
    CHECK(q.result.stats.amax == 3);
    CHECK(q.result.stats.n == 4);
    CHECK(q.out[1] == -3);
}

TEST_CASE("empty matrices give empty results, wrong sizes are refused") {
    for (const char* recipe : {"current", "rowwise", "block128", "mxfp8", "nvfp4", "fp32"})
        for (const auto& [rows, cols] : {std::pair<std::size_t, std::size_t>{0, 0}, {0, 5}, {5, 0}}) {
            CAPTURE(std::string(recipe));
            const Quantized q = run(recipe, {}, {.rows = rows, .cols = cols});
            CHECK(q.result.stats.n == 0);
            CHECK(std::isnan(q.result.stats.sqnr_db()));
        }
    CHECK_THROWS_AS(run("current", {1, 2, 3}, {.rows = 2, .cols = 2}), Error);
}

TEST_CASE("bits per element, scales included") {
    const auto bits_of = [](const char* recipe) {
        return bits_per_element(parse_recipe(recipe), 1024, 1024);
    };
    CHECK(bits_of("fp32") == 32);
    CHECK(bits_of("bf16") == 16);
    CHECK(bits_of("unscaled") == 8);
    CHECK(bits_of("current") == doctest::Approx(8).epsilon(1e-4));
    CHECK(bits_of("rowwise") == 8 + 32.0 / 1024);
    CHECK(bits_of("block128") == 8.25);
    CHECK(bits_of("mxfp8") == 8.25);
    CHECK(bits_of("mxfp6-e2m3") == 6.25);
    CHECK(bits_of("mxfp4") == 4.25);
    CHECK(bits_of("nvfp4") == 4.5 + 32.0 / (1024 * 1024));
    CHECK(bits_per_element(parse_recipe("mxfp8"), 1, 33) == 8 + 16.0 / 33);
}
