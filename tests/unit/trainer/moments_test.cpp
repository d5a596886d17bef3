// Moments and weights in 16 or 8 bits.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/files/files.h"
#include "core/nn/optimizer.h"
#include "core/scaling/moment_storage.h"
#include "core/tensors/safetensors.h"
#include "core/trainer/checkpoint.h"
#include "core/trainer/cpu_trainer.h"
#include "tests/scratch.h"

#if __has_include(<cuda_fp8.h>)
#include <cuda_fp8.h>
#define FP8LAB_HAS_ORACLE
#endif

using namespace fp8lab;

namespace {

using Values = std::vector<float>;

TrainSpec spec_of(const std::string& recipes, std::uint64_t seed = 1) {
    TrainOptions options;
    options.recipes = recipes;
    options.steps = 60;
    options.batch = 48;
    options.seed = seed;
    options.layers = std::vector{20, 24, 2};
    return make_train_spec(options);
}

// All values of a checkpoint by name.
std::map<std::string, Values> state_of(Trainer& trainer) {
    const Scratch scratch;
    trainer.save(scratch.path);
    const SafeTensors file =
        parse_safetensors(read_bytes(checkpoints_to_load(scratch.path)[0]), "checkpoint");
    std::map<std::string, Values> out;
    for (const auto& [name, tensor] : file.tensors) out[name] = tensor.values;
    return out;
}
std::map<std::string, Values> state_after(const std::string& recipe, int steps) {
    const auto trainer = make_cpu_trainer(spec_of(recipe));
    trainer->step(steps);
    return state_of(*trainer);
}

// Numbers of many magnitudes, some of them 0, as moments have them.
Values numbers(std::size_t n) {
    Values out(n);
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t bits = random_bits(7, 1, i);
        out[i] = bits % 17 == 0 ? 0
                                : std::ldexp(1 + static_cast<float>(bits % 4096) / 4096,
                                             -static_cast<int>(bits >> 12) % 30);
        if (bits & 1) out[i] = -out[i];
    }
    return out;
}

// To nearest, ties to even, by the bits alone.
float bf16_of(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return std::bit_cast<float>((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000U);
}
bool is_bf16(float x) { return (std::bit_cast<std::uint32_t>(x) & 0xFFFF) == 0; }

// 11 significant bits, or a multiple of 2^-24.
float fp16_of(float x) {
    const int exponent = std::max(std::ilogb(x), -14) - 10;
    const double rounded =
        std::ldexp(std::nearbyint(std::ldexp(static_cast<double>(x), -exponent)), exponent);
    return std::fabs(rounded) > 65504 ? std::copysign(INFINITY, x) : static_cast<float>(rounded);
}

#ifdef FP8LAB_HAS_ORACLE
// NVIDIA's host functions, with the scale of each group of `block` values.
Values fp8_of(Values values, bool e5m2, std::size_t block) {
    const __nv_fp8_interpretation_t kind = e5m2 ? __NV_E5M2 : __NV_E4M3;
    const float limit = e5m2 ? 57344.0F : 448.0F;
    for (std::size_t first = 0; first < values.size(); first += block) {
        const std::size_t end = std::min(values.size(), first + block);
        float largest = 0;
        for (std::size_t i = first; i < end; ++i) largest = std::max(largest, std::fabs(values[i]));
        const float scale = largest > 0 ? limit / largest : 1;
        for (std::size_t i = first; i < end; ++i) {
            const __nv_fp8_storage_t code = __nv_cvt_float_to_fp8(values[i] * scale, __NV_SATFINITE, kind);
            values[i] = __half2float(__half(__nv_cvt_fp8_to_halfraw(code, kind))) * (1 / scale);
        }
    }
    return values;
}
#endif

std::optional<CastPlan> storage_of_v(const std::string& options) {
    return moment_storage(parse_recipe("bf16:" + options)).v;
}
Values stored(const std::string& options, Values values) {
    store(storage_of_v(options), values, 1, 2);
    return values;
}

}  // namespace

TEST_CASE("moments in 16 bits are the nearest numbers of the format, without a scale") {
    Values values = numbers(1000);
    values.insert(values.end(), {1e-9F, -1e-9F, 70000, -70000, 65504, 1e-30F, 1 + 0x1p-8F, 1 + 0x1.8p-7F});
    Values bf16 = values, fp16 = values;
    for (float& x : bf16) x = bf16_of(x);
    for (float& x : fp16)
        if (x != 0) x = fp16_of(x);
    CHECK(stored("v=bf16", values) == bf16);
    CHECK(stored("v=fp16", values) == fp16);
    CHECK(std::isinf(fp16[1002]));
    CHECK(stored("v=fp32", values) == values);
}

TEST_CASE("moments in 8 bits are NVIDIA's codes under the scale of their 128 values or of their matrix") {
#ifndef FP8LAB_HAS_ORACLE
    MESSAGE("skipped: cuda_fp8.h is not on this machine");
#else
    Values values = numbers(3 * 128 + 50);
    std::fill(values.begin() + 128, values.begin() + 256, 0.0F);  // a group without an amax
    const Values large = numbers(300'000);                        // several pieces of work
    for (const Values& all : {values, large})
        for (const bool e5m2 : {false, true}) {
            const std::string format = e5m2 ? "v=e5m2" : "v=e4m3";
            CHECK(stored(format, all) == fp8_of(all, e5m2, 128));
            CHECK(stored(format + ":moment_block=tensor", all) == fp8_of(all, e5m2, all.size()));
        }
#endif
}

TEST_CASE("codes of moments give back what was stored, to the bit, and round what was not") {
    const Values all = numbers(6000);
    for (const std::string format : {"e4m3", "e5m2"})
        for (const std::string rounding : {"", ":round_v=stochastic"})
            // Ends of the range: the largest scale is FLT_MAX, whose inverse is subnormal.
            for (const float size : {1.0F, 1e-10F, 1e-30F, 1e-36F, 3e-38F, 1e-40F, 1e30F}) {
                CAPTURE(format);
                CAPTURE(size);
                Values values = all;
                for (float& x : values) x *= size;
                const auto how = storage_of_v("v=" + format + rounding);
                for (std::uint64_t step = 0; step < 20; ++step) {
                    store(how, values, 1, step);
                    const MomentCodes codes = moment_codes(*how->format, values);
                    CHECK(codes.codes.size() == values.size());
                    CHECK(codes.scale_inv.size() == (values.size() + 127) / 128);
                    const Values back = moment_values(*how->format, codes);
                    CHECK(std::ranges::equal(back, values, {}, std::bit_cast<std::uint32_t, float>,
                                             std::bit_cast<std::uint32_t, float>));
                    // As the next update of a moment leaves it.
                    for (std::size_t i = 0; i < values.size(); ++i)
                        values[i] = values[i] * 0.9F + all[i] * size * 0.1F;
                }
                const Values exact = values;
                store(storage_of_v("v=" + format), values, 1, 2);
                const FormatInfo& info = find_format(format);
                CHECK(moment_values(info, moment_codes(info, exact)) == values);
            }
    // A largest value that was rounded down to the second largest code.
    for (const std::string format : {"e4m3", "e5m2"}) {
        const FormatInfo& info = find_format(format);
        const auto below =
            static_cast<float>(max_finite(info)) * (format == "e4m3" ? 416.0F / 448 : 49152.0F / 57344);
        for (int i = 1; i < 2000; ++i) {
            const float scale_inv =
                1 / (static_cast<float>(max_finite(info)) / (1 + static_cast<float>(i) / 2000));
            const Values values = {below * scale_inv, -decode(info, 3) * scale_inv, 0, scale_inv};
            CHECK(moment_values(info, moment_codes(info, values)) == values);
        }
    }
}

TEST_CASE("stochastic rounding of moments takes the two neighbours, and their mean is the value") {
    struct Case {
        const char* options;
        float value, below, above;
    };
    for (const Case& c : {Case{"v=bf16:round_v=stochastic", 1 + 0x1p-7F / 5, 1, 1 + 0x1p-7F},
                          {"v=fp16:round_v=stochastic", 0x1.4p-24F, 0x1p-24F, 0x1p-23F},
                          {"v=e4m3:round_v=stochastic", 17.5F / 448, 16.0F / 448, 18.0F / 448},
                          {"v=e5m2:round_v=stochastic", 17.5F / 57344, 16.0F / 57344, 20.0F / 57344}}) {
        CAPTURE(c.options);
        Values values(100'000, c.value);
        const bool scaled = std::string(c.options).find("=e") != std::string::npos;
        for (std::size_t i = 0; scaled && i < values.size(); i += 128)
            values[i] = 1;  // of every group, the amax
        const Values out = stored(c.options, values);
        double sum = 0, n = 0;
        for (std::size_t i = 0; i < out.size(); ++i) {
            if (values[i] == 1) continue;
            const bool low = std::fabs(out[i] / c.below - 1) < 1e-6F,
                       high = std::fabs(out[i] / c.above - 1) < 1e-6F;
            REQUIRE((low || high));
            sum += static_cast<double>(out[i]), ++n;
        }
        const double step = static_cast<double>(c.above - c.below);
        CHECK(std::fabs(sum / n - static_cast<double>(c.value)) < 4 * step / 2 / std::sqrt(n));
        Values other = values;
        store(storage_of_v(c.options), other, 1, 3);
        CHECK(out != other);
    }
}

TEST_CASE("values that become 0 are counted, those that were 0 are not") {
    Values values = {0, 1e-9F, 1, 2e-9F, 0};
    CHECK(store(storage_of_v("v=fp16"), values, 1, 2, true) == 2);
    CHECK(values == Values{0, 0, 1, 0, 0});
    CHECK(store(storage_of_v("v=fp16"), values, 1, 2, true) == 0);
    values = {1e-9F};
    CHECK(store(storage_of_v("v=fp32"), values, 1, 2, true) == 0);
    CHECK(values[0] == 1e-9F);
}

TEST_CASE(
    "v in BF16 does not fall by 0.1 % of itself where it is rounded to nearest, and stochastically it does") {
    for (const bool stochastic : {false, true}) {
        const auto how = storage_of_v(stochastic ? "v=bf16:round_v=stochastic" : "v=bf16");
        Values v(4096, 1);
        for (std::uint64_t step = 0; step < 400; ++step) {
            for (float& x : v) x *= 0.999F;  // beta2, and a gradient of 0
            store(how, v, 1, step);
        }
        double mean = 0;
        for (const float x : v) mean += static_cast<double>(x) / static_cast<double>(v.size());
        if (stochastic)
            CHECK(mean == doctest::Approx(std::pow(0.999, 400)).epsilon(0.002));
        else
            CHECK(mean == 1);
    }
}

TEST_CASE("updates above a limit are counted from the moments that they were made of") {
    OptimizerStep how{.lr = 0.5, .step = 3};
    Moments moments;
    Values w(4, 0), before = w;
    for (int step = 0; step < 4; ++step) {
        how.step = step;
        before = w;
        const float growing = std::ldexp(1.0F, 4 * step);  // moves by less than the learning rate
        REQUIRE(update(how, w, Values{1, -1, growing, 0}, moments));
    }
    Values moved(4);
    for (std::size_t i = 0; i < 4; ++i) moved[i] = std::fabs(w[i] - before[i]);
    for (const double limit : {0.0, 0.2, 0.4, 0.6})
        CHECK(count_updates_above(how, moments, limit) ==
              std::ranges::count_if(moved, [&](float x) { return static_cast<double>(x) > limit; }));
    CHECK(count_updates_above(how, moments, 0.2) == 3);
    CHECK(count_updates_above(how, moments, 0.4) == 2);
    CHECK(count_updates_above(how, {}, 0) == 0);
}

TEST_CASE("moments in FP32 said or not said are the same bytes, and no record has a share") {
    CHECK(state_after("delayed:m=fp32:v=fp32:master=fp32", 12) == state_after("delayed", 12));
    auto trainer = make_cpu_trainer(spec_of("delayed"));
    trainer->step(2);
    const Snapshot snapshot = trainer->snapshot();
    for (const StepRecord& record : snapshot.arms[0].records) {
        CHECK(std::isnan(record.v_zero_pct));
        CHECK(std::isnan(record.large_updates_ppm));
    }
}

// What is rounded is what the next update reads: the first one moves the weights as moments in FP32 do.
TEST_CASE("after an update the moments of matrices are on their grid, those of biases are not") {
    const auto exact = state_after("bf16", 1), narrow = state_after("bf16:m=bf16:v=bf16", 1);
    for (const char* name : {"w1", "b1", "w2", "b2", "m.b1", "v.b1", "m.b2", "v.b2"})
        CHECK(narrow.at(name) == exact.at(name));
    for (const char* name : {"m.w1", "v.w1", "m.w2", "v.w2"}) {
        Values expected = exact.at(name);
        for (float& x : expected) x = bf16_of(x);
        CHECK(narrow.at(name) == expected);
        CHECK(narrow.at(name) != exact.at(name));
    }
    CHECK(state_after("bf16:m=bf16", 2).at("w1") != state_after("bf16", 2).at("w1"));
#ifdef FP8LAB_HAS_ORACLE
    const auto eight = state_after("bf16:m=e5m2:v=e4m3", 1);
    CHECK(eight.at("m.w1") == fp8_of(exact.at("m.w1"), true, 128));  // rows of 20: groups run across them
    CHECK(eight.at("v.w1") == fp8_of(exact.at("v.w1"), false, 128));
    const auto one = state_after("bf16:m=e4m3:moment_block=tensor", 1);
    CHECK(one.at("m.w1") == fp8_of(exact.at("m.w1"), false, exact.at("m.w1").size()));
    CHECK(one.at("v.w1") == exact.at("v.w1"));
#endif
}

TEST_CASE("moments and weights that are rounded stochastically draw numbers of their own, in every step") {
    const auto a = state_after("bf16:m=bf16:v=bf16:round_m=stochastic:round_v=stochastic", 1),
               exact = state_after("bf16", 1);
    int up = 0, down = 0, together = 0;
    for (std::size_t i = 0; i < exact.at("m.w1").size(); ++i) {
        const bool m = std::fabs(a.at("m.w1")[i]) > std::fabs(exact.at("m.w1")[i]),
                   v = a.at("v.w1")[i] > exact.at("v.w1")[i];
        up += m, down += !m, together += m == v;
    }
    CHECK(up > 150);
    CHECK(down > 150);
    CHECK(together > 150);
    CHECK(together < 330);  // of 480
    const auto second = state_after("bf16:m=bf16:v=bf16:round_m=stochastic:round_v=stochastic", 2);
    CHECK(a.at("m.w1") != second.at("m.w1"));
}

TEST_CASE(
    "weights without an FP32 master are BF16 numbers from the start, and lose updates below half a step") {
    for (const std::string rounding : {"", ":round_update=stochastic"}) {
        auto trainer = make_cpu_trainer(spec_of("bf16:master=bf16" + rounding));
        const auto start = state_of(*make_cpu_trainer(spec_of("bf16")));
        auto state = state_of(*trainer);
        Values expected = start.at("w1");
        for (float& x : expected) x = bf16_of(x);
        CHECK(state.at("w1") == expected);
        trainer->step(3);
        trainer->set(SetLearningRate{1e-5});  // half a step of BF16 at 0.05 is 12 times as much
        trainer->step(1);
        const auto before = state_of(*trainer);
        trainer->step(5);
        state = state_of(*trainer);
        for (const char* name : {"w1", "w2"}) CHECK(std::ranges::all_of(state.at(name), is_bf16));
        CHECK_FALSE(std::ranges::all_of(state.at("b1"), is_bf16));
        CHECK(state.at("b1") != before.at("b1"));
        std::size_t moved = 0;
        for (std::size_t i = 0; i < state.at("w1").size(); ++i)
            moved += std::fabs(before.at("w1")[i]) > 0.05F && state.at("w1")[i] != before.at("w1")[i];
        if (rounding.empty())
            CHECK(moved == 0);
        else
            CHECK(moved > 0);
    }
}

TEST_CASE("a record has the share of v that became 0 and the large updates of the step") {
    TrainOptions options;
    options.recipes = "bf16:v=fp16";
    auto trainer = make_cpu_trainer(make_train_spec(options));
    trainer->step(60);
    const auto records = trainer->snapshot().arms[0].records;
    CHECK(records[0].large_updates_ppm == 0);  // the first update of AdamW is lr everywhere
    CHECK(records[0].v_zero_pct > 0);          // 1e-3 g^2 below 3e-8
    double large = 0;
    for (const StepRecord& record : records) {
        CHECK(record.v_zero_pct >= 0);
        CHECK(record.v_zero_pct < 100);
        large += record.large_updates_ppm;
    }
    CHECK(large > 0);  // m over the root of a v that was lost
    auto wide = make_cpu_trainer(spec_of("bf16:v=bf16"));
    wide->step(20);
    const Snapshot snapshot = wide->snapshot();
    for (const StepRecord& record : snapshot.arms[0].records) CHECK(record.v_zero_pct == 0);
    // A step that is left out has no update.
    auto skipping = make_cpu_trainer(spec_of("unscaled:overflow=nonsaturate:loss_scale=1e30:v=bf16"));
    skipping->step(1);
    const StepRecord first = skipping->snapshot().arms[0].records[0];
    REQUIRE(first.skipped == 1);
    CHECK(std::isnan(first.v_zero_pct));
}

TEST_CASE("a resumed run with moments or weights in fewer bits is the same to the byte") {
    for (const char* recipe :
         {"bf16:m=bf16", "bf16:v=bf16:round_v=stochastic", "bf16:m=fp16:v=fp16", "bf16:m=e4m3:v=e5m2",
          "delayed:m=e5m2:v=e4m3:round_m=stochastic:round_v=stochastic",
          "bf16:m=e4m3:v=e4m3:moment_block=tensor", "bf16:master=bf16",
          "delayed:master=bf16:round_update=stochastic:m=e4m3:v=bf16",
          "delayed:master=none:round_update=stochastic:v=e4m3"})
        for (const std::uint64_t seed : {1, 2, 3}) {
            CAPTURE(recipe);
            const Scratch scratch;
            auto whole = make_cpu_trainer(spec_of(recipe, seed)),
                 first = make_cpu_trainer(spec_of(recipe, seed)),
                 second = make_cpu_trainer(spec_of(recipe, seed));
            whole->step(40);
            first->step(25);
            first->save(scratch.path);
            second->load(scratch.path);
            CHECK(state_of(*first) == state_of(*second));
            second->step(15);
            CHECK(state_of(*whole) == state_of(*second));
        }
}

TEST_CASE(
    "a checkpoint opens under a recipe that keeps its state in other formats, and the next update rounds "
    "it") {
    const Scratch scratch, back;
    auto wide = make_cpu_trainer(spec_of("bf16"));
    wide->step(10);
    wide->save(scratch.path);
    auto narrow = make_cpu_trainer(spec_of("bf16:m=bf16:v=bf16:master=bf16"));
    narrow->load(scratch.path);
    CHECK(std::ranges::all_of(state_of(*narrow).at("w1"), is_bf16));
    CHECK(state_of(*narrow).at("v.w1") == state_of(*wide).at("v.w1"));
    narrow->step(1);
    CHECK(std::ranges::all_of(state_of(*narrow).at("v.w1"), is_bf16));
    narrow->save(back.path);
    wide->load(back.path);
    CHECK(state_of(*wide).at("v.w1") == state_of(*narrow).at("v.w1"));
    wide->step(1);
    CHECK_FALSE(std::ranges::all_of(state_of(*wide).at("v.w1"), is_bf16));
    // The same change during a run.
    wide->set(SetRecipe{0, parse_recipe("bf16:m=bf16:v=bf16:master=bf16")});
    wide->step(1);
    for (const char* name : {"w1", "m.w1", "v.w1"})
        CHECK(std::ranges::all_of(state_of(*wide).at(name), is_bf16));
}

TEST_CASE("moments in a format are refused for an optimiser that has none") {
    TrainOptions options;
    options.optimizer = "sgd";
    options.recipes = "bf16:master=bf16";
    const TrainSpec spec = make_train_spec(options);
    options.recipes = "bf16,bf16:v=e4m3";
    CHECK_THROWS_WITH_AS(make_train_spec(options),
                         "--recipe: recipe bf16: m and v have no effect with optimizer sgd", Error);
    CHECK_THROWS_AS(check_command(spec, SetRecipe{0, parse_recipe("bf16:m=bf16")}), Error);
}

TEST_CASE(
    "in a transformer a head that reads the embedding has narrow moments, an embedding of its own has not") {
    for (const int tie : {0, 1}) {
        TrainOptions options;
        options.model = "transformer";
        options.task = "copying";
        options.sizes = {{"d", 16}, {"heads", 2}, {"ffn", 16}, {"context", 32}, {"tie", tie}};
        options.batch = 2;
        options.recipes = "bf16:m=bf16:v=bf16";
        auto trainer = make_cpu_trainer(make_train_spec(options));
        trainer->step(2);
        const auto state = state_of(*trainer);
        for (const auto& [name, values] : state) {
            if (!name.starts_with("m.")) continue;
            CAPTURE(name);
            const bool vector = name.find("norm") != std::string::npos;
            const bool exact = vector || (name == "m.embedding" && tie == 0);
            CHECK(std::ranges::all_of(values, is_bf16) == !exact);
        }
    }
}
