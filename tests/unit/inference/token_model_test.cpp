// A transformer at low precision, layer by layer.
#include "core/inference/token_model.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "core/base/error.h"
#include "core/inference/mixes.h"
#include "core/inference/score.h"
#include "core/nn/trainer.h"
#include "core/trainer/cpu_trainer.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

struct Trained {
    TrainSpec spec;
    ArmCheckpoint checkpoint;
};

Trained trained(std::uint64_t seed, int steps, TaskKind task = TaskKind::text, int tie = 0,
                const std::string& recipe = "bf16") {
    TrainOptions options;
    options.model = "transformer";
    options.task = to_string(task);
    options.recipes = recipe;
    options.seed = seed;
    options.steps = steps;
    options.sizes = {{"d", 32}, {"blocks", 1}, {"heads", 2}, {"ffn", 96}, {"tie", tie}};
    const Scratch scratch;
    Trained out{make_train_spec(options), {}};
    const auto trainer = make_cpu_trainer(out.spec);
    trainer->step(steps);
    trainer->save(scratch.path);
    out.checkpoint = load_checkpoints(scratch.path, out.spec).arms.front();
    return out;
}

const LowFormat& format(const char* id) { return find_low_format(id, "test"); }

Reference reference(TokenModel& model) { return reference_of(model.forward(), true, model.data().targets); }

double divergence(TokenModel& model, const char* id, bool activations = true) {
    const Mix mix = uniform_mix(model.layers().size(), format(id), activations);
    return divergence_of(reference(model), model.run(mix).y);
}

}  // namespace

TEST_CASE("a transformer's layers are its linears and its head, in the order of the forward pass") {
    for (const int tie : {0, 1}) {
        const Trained t = trained(1, 1, TaskKind::text, tie);
        const TokenModel model(t.spec, t.checkpoint);
        constexpr std::array kNames = {"1.qkv", "1.out", "1.gate_up", "1.down", "head"};
        constexpr std::array<std::array<std::size_t, 2>, 5> kShapes = {
            {{96, 32}, {32, 32}, {192, 32}, {32, 96}, {55, 32}}};
        REQUIRE(model.layers().size() == kNames.size());
        for (std::size_t l = 0; l < kNames.size(); ++l) {
            CHECK(model.layers()[l].name == kNames[l]);
            CHECK(model.layers()[l].out == kShapes[l][0]);
            CHECK(model.layers()[l].in == kShapes[l][1]);
        }
        CHECK(bits_per_weight(model.layers(), uniform_mix(5, format("mxfp8"))) == doctest::Approx(8.25));
    }
}

TEST_CASE("with every layer in FP32 nothing changes, and nothing is lost") {
    const Trained t = trained(2, 5, TaskKind::copying);
    TokenModel model(t.spec, t.checkpoint);
    const Mix mix{std::vector(5, &format("fp32")), std::vector(5, &format("fp32"))};
    const Lowered run = model.run(mix, {}, true);
    CHECK(run.y.values == model.forward().values);
    CHECK(run.y.rows == model.data().targets.rows);
    CHECK(run.y.rows < model.data().test.size());  // copying does not score every token
    for (const LayerLoss& loss : run.layers) CHECK((loss.w.noise == 0 && loss.a.noise == 0 && loss.a.n > 0));
}

TEST_CASE("weights alone in a format: the same logits as of a model that has those weights") {
    const Trained t = trained(1, 20);
    TokenModel lowered(t.spec, t.checkpoint);
    for (std::size_t l = 0; l < 5; ++l) {
        Mix mix{std::vector(5, &format("fp32")), std::vector(5, &format("fp32"))};
        mix.weights[l] = &format("e4m3");
        Trained other = t;
        const ModelPlan plan = model_plan(t.spec);
        for (std::size_t p = 0; p < plan.parameters.size(); ++p) {
            const auto& operand = plan.parameters[p].operand;
            if (!operand || plan.gemm(*operand).name != lowered.layers()[l].name) continue;
            std::vector<float>& values = other.checkpoint.parameters[p].values;
            const float scale = 448 / amax(values);  // current scaling, numerics.md 3.1
            for (float& w : values) {
                std::vector<float> q(1);
                quantize(find_format("e4m3"), std::span(&w, 1), q, {.scale = scale});
                w = q[0];
            }
        }
        TokenModel same(other.spec, other.checkpoint);
        CAPTURE(lowered.layers()[l].name);
        CHECK(same.forward().values == lowered.run(mix).y.values);
        CHECK(same.forward().values != lowered.forward().values);
    }
}

TEST_CASE(
    "fewer bits cost more, whatever the seed, and static scales from training sequences are near dynamic "
    "ones") {
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
        const Trained t = trained(seed, 60);
        TokenModel model(t.spec, t.checkpoint);
        CAPTURE(seed);
        const double bf16 = divergence(model, "bf16"), e4m3 = divergence(model, "e4m3"),
                     nvfp4 = divergence(model, "nvfp4"), e2m1 = divergence(model, "e2m1");
        CHECK(bf16 > 0);
        CHECK(bf16 * 10 < e4m3);
        CHECK(e4m3 * 3 < nvfp4);
        CHECK(nvfp4 < e2m1);
        CHECK(divergence(model, "nvfp4", false) < nvfp4);
        const Mix mix = uniform_mix(5, format("e4m3"));
        const StaticScales scales = {model.calibrated_amaxes({4}), 0};
        const double fixed = divergence_of(reference(model), model.run(mix, scales).y);
        CHECK(fixed < 2 * e4m3);
        StaticScales small = scales;
        for (float& a : small.amaxes) a /= 16;  // most of what is larger saturates
        CHECK(divergence_of(reference(model), model.run(mix, small).y) > 10 * e4m3);
    }
}

TEST_CASE("smoothing moves scales behind the norms, and the model stays what it is, to the bit") {
    const Trained t = trained(1, 60);
    TokenModel plain(t.spec, t.checkpoint);
    const Matrix<float> logits = plain.forward();
    const std::vector<float> before = plain.calibrated_amaxes({1});
    for (const double alpha : {0.0, 0.5, 1.0}) {
        TokenModel smooth(t.spec, t.checkpoint);
        smooth.smooth(alpha, 2);
        CHECK(smooth.forward().values == logits.values);
        const std::vector<float> after = smooth.calibrated_amaxes({1});
        const Mix mix = uniform_mix(5, format("e4m3"));
        for (std::size_t l = 0; l < 5; ++l) {
            CAPTURE(smooth.layers()[l].name);
            const bool moved = l == 0 || l == 2 || l == 4;  // qkv, gate_up, head
            CHECK((after[l] != before[l]) == moved);
            const Mix alone = single_mix(5, l, format("e4m3"));
            if (!moved) CHECK(smooth.run(alone).y.values == plain.run(alone).y.values);
        }
        // With alpha 1 every channel of an input is at most sqrt(2) on its calibration sequences.
        if (alpha == 1) CHECK(after[0] <= std::sqrt(2.0F) * 1.0001F);
    }
    TokenModel model(t.spec, t.checkpoint);
    for (const double alpha : {-0.1, 1.1, std::nan("")})
        CHECK_THROWS_WITH_AS(model.smooth(alpha, 1), doctest::Contains("alpha is 0 to 1"), Error);
}

TEST_CASE("smoothing takes an outlier channel out of the input of qkv") {
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
        Trained t = trained(seed, 60);
        constexpr std::size_t kChannel = 5, kWidth = 32;
        const ModelPlan plan = model_plan(t.spec);
        for (std::size_t i = 0; i < plan.parameters.size(); ++i) {  // the same function
            std::vector<float>& values = t.checkpoint.parameters[i].values;
            if (plan.parameters[i].name == "1.norm1") values[kChannel] *= 64;
            if (plan.parameters[i].name == "1.qkv.w")
                for (std::size_t at = kChannel; at < values.size(); at += kWidth) values[at] /= 64;
        }
        TokenModel plain(t.spec, t.checkpoint), smooth(t.spec, t.checkpoint);
        smooth.smooth(0.5, 2);
        const Mix mix = single_mix(5, 0, format("int8"));
        const Reference ref = reference(plain);
        CAPTURE(seed);
        CHECK(divergence_of(ref, smooth.run(mix).y) * 10 < divergence_of(ref, plain.run(mix).y));
    }
}

TEST_CASE("percentiles of a transformer's inputs lie below its amaxes, and too many values are refused") {
    const Trained t = trained(1, 20);
    TokenModel model(t.spec, t.checkpoint);
    const std::vector<float> largest = model.calibrated_amaxes({2}), most = model.calibrated_amaxes({2, 99}),
                             half = model.calibrated_amaxes({2, 50});
    for (std::size_t l = 0; l < 5; ++l) {
        CHECK(most[l] < largest[l]);
        CHECK(half[l] < most[l]);
        CHECK(half[l] > 0);
    }
    CHECK_THROWS_WITH_AS(model.calibrated_amaxes({1, 0}), doctest::Contains("above 0"), Error);
    // 4,480 numbers per token of the five layers, 2,048 tokens per batch.
    CHECK_THROWS_WITH_AS(model.calibrated_amaxes({1'000'000, 99}), doctest::Contains("take fewer batches"),
                         Error);
}

TEST_CASE("the greedy path of a transformer: the divergences are those of its mixes") {
    const Trained t = trained(1, 40, TaskKind::copying);
    TokenModel model(t.spec, t.checkpoint);
    const Reference ref = reference(model);
    const std::vector formats = {&format("mxfp8"), &format("mxfp4")};
    const auto divergence = [&](const Mix& mix) { return divergence_of(ref, model.run(mix).y); };
    const auto path = greedy_path(model.layers(), divergence, formats, true);
    REQUIRE(path.size() == 6);
    for (std::size_t i = 0; i < path.size(); ++i) {
        CHECK(path[i].point.divergence == divergence(path[i].mix));
        CHECK(path[i].point.bits == doctest::Approx(bits_per_weight(model.layers(), path[i].mix)));
        CHECK(std::ranges::count(path[i].mix.weights, formats[1]) == std::ptrdiff_t(i));
    }
    std::size_t told = 0;
    greedy_path(model.layers(), divergence, formats, true, [&](std::size_t done, std::size_t of) {
        CHECK(done == ++told);
        CHECK(of == 5);
    });
    CHECK(told == 5);
}

TEST_CASE("a model that was trained with a clamped SwiGLU is computed with it") {
    const Trained t = trained(1, 3, TaskKind::text, 0, "current:act=clamp");
    Trained plain = t;
    plain.checkpoint.recipe = "current";
    for (ParameterCheckpoint& p : plain.checkpoint.parameters)
        for (float& v : p.values) v *= 8;  // so that products leave the clamp
    Trained clamped = plain;
    clamped.checkpoint.recipe = t.checkpoint.recipe;
    TokenModel a(plain.spec, plain.checkpoint), b(clamped.spec, clamped.checkpoint);
    CHECK(a.forward().values != b.forward().values);
}

TEST_CASE("a mix of another length and a task without held-out tokens are refused") {
    const Trained t = trained(1, 1);
    TokenModel model(t.spec, t.checkpoint);
    CHECK_THROWS_AS(model.run(uniform_mix(4, format("e4m3"))), Error);
    CHECK_THROWS_AS(model.run(uniform_mix(5, format("e4m3")), {{1, 2}, 0}), Error);
}

TEST_CASE("a model of tokens that are no characters is computed too, unless its logits are too many") {
    const Trained t = trained(1, 2, TaskKind::zipf, 1);
    TokenModel model(t.spec, t.checkpoint);
    CHECK(model.layers().back().out == 4096);
    CHECK(model.data().targets.cols == 4096);
    CHECK(model.data().name == "4096 held-out tokens");
    CHECK(divergence(model, "e4m3") > 0);
    TrainOptions options;
    options.model = "transformer";
    options.task = "zipf:50257";
    options.sizes = {{"d", 8}, {"heads", 1}, {"ffn", 8}, {"blocks", 1}, {"context", 1024}};
    CHECK_THROWS_WITH_AS(TokenModel(make_train_spec(options), {}),
                         "--data: 65536 held-out tokens of a vocabulary of 50257 have 3.29e+09 logits; the "
                         "most that are kept are 134217728",
                         Error);
}
