// Loss scaling, and amaxes that are an average or a percentile.
#include "core/trainer/loss_scaler.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/files/bounded_file.h"
#include "core/files/files.h"
#include "core/tensors/safetensors.h"
#include "core/trainer/checkpoint.h"
#include "core/trainer/cpu_trainer.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

TrainSpec spec_of(const std::string& recipes, std::uint64_t seed = 1) {
    TrainOptions options;
    options.recipes = recipes;
    options.steps = 60;
    options.batch = 48;
    options.seed = seed;
    options.layers = std::vector{16, 32, 32, 2};
    return make_train_spec(options);
}

std::vector<StepRecord> records_of(Trainer& trainer, int steps) {
    trainer.step(steps);
    return trainer.snapshot().arms[0].records;
}
std::vector<StepRecord> records_of(const std::string& recipe, int steps) {
    return records_of(*make_cpu_trainer(spec_of(recipe)), steps);
}

// All values of a checkpoint by name.
std::map<std::string, std::vector<float>> state_of(Trainer& trainer) {
    const Scratch scratch;
    trainer.save(scratch.path);
    const SafeTensors file =
        parse_safetensors(read_bytes(checkpoints_to_load(scratch.path)[0]), "checkpoint");
    std::map<std::string, std::vector<float>> out;
    for (const auto& [name, tensor] : file.tensors) out[name] = tensor.values;
    return out;
}

LossScaler scaler_of(float scale, int interval) {
    Recipe recipe = parse_recipe("unscaled");
    recipe.loss_scale = scale;
    recipe.growth_interval = interval;
    LossScaler out;
    out.set_recipe(recipe);
    return out;
}

// One step with such a gradient.
bool step(LossScaler& scaler, float gradient) {
    std::vector<float> g = {1.0F, gradient};
    const std::vector<std::span<float>> gradients = {g};
    return scaler.unscale(gradients);
}

}  // namespace

TEST_CASE("a loss scaler halves at an Inf or NaN and doubles after so many steps without one") {
    LossScaler scaler = scaler_of(65536, 3);
    CHECK(step(scaler, 1));
    CHECK(step(scaler, 1));
    CHECK(scaler.state().scale == 65536);
    CHECK(step(scaler, 1));
    CHECK(scaler.state().scale == 131072);
    CHECK(step(scaler, 1));
    CHECK_FALSE(step(scaler, INFINITY));
    CHECK(scaler.state().scale == 65536);
    CHECK_FALSE(step(scaler, NAN));
    CHECK(scaler.state().scale == 32768);
    CHECK(scaler.state().skipped == 2);
    for (int i = 0; i < 3; ++i) CHECK(step(scaler, 1));  // it counts anew
    CHECK(scaler.state().scale == 65536);

    LossScaler fixed = scaler_of(256, 0);
    for (int i = 0; i < 50; ++i) CHECK(step(fixed, 1));
    CHECK(fixed.state().scale == 256);

    LossScaler large = scaler_of(0x1p127F, 1);  // twice as much is Inf
    CHECK(step(large, 1));
    CHECK(large.state().scale == 0x1p127F);
}

TEST_CASE("gradients are divided by the scale they were multiplied with") {
    LossScaler scaler = scaler_of(1024, 0);
    std::vector<float> dy = {1, -0.5F, 0x1p-120F};
    const std::vector<float> before = dy;
    scaler.scale(dy);
    CHECK(dy[0] == 1024);
    CHECK(scaler.unscale(std::vector<std::span<float>>{dy}));
    CHECK(dy == before);
}

TEST_CASE("in FP32 a loss scale that is a power of two changes no weight") {
    auto plain = make_cpu_trainer(spec_of("fp32")),
         scaled = make_cpu_trainer(spec_of("fp32:loss_scale=4096"));
    plain->step(20);
    scaled->step(20);
    auto a = state_of(*plain), b = state_of(*scaled);
    CHECK(b.at("loss_scale") == std::vector<float>{4096, 0, 0});
    b.erase("loss_scale");
    CHECK(a == b);
}

TEST_CASE("without a loss scale no record, no file and no gradient has one") {
    auto trainer = make_cpu_trainer(spec_of("delayed"));
    CHECK(records_of(*trainer, 2)[1].loss_scale == 0);
    CHECK_FALSE(state_of(*trainer).contains("loss_scale"));
}

// E5M2 has Inf: casts that do not saturate give it, those that do never do.
TEST_CASE("a scaler grows without end where casts saturate, and skips where they do not") {
    const auto saturating = records_of("unscaled:loss_scale=65536:growth_interval=1", 60);
    CHECK(saturating.back().loss_scale > 0x1p70F);
    CHECK(saturating.back().skipped == 0);
    const auto others = records_of("unscaled:overflow=nonsaturate:loss_scale=65536:growth_interval=1", 60);
    CHECK(others.back().skipped > 5);
    CHECK(others.back().loss_scale < 0x1p40F);
    CHECK(std::isfinite(others.back().loss));
}

TEST_CASE("a skipped step changes no weight and no moment, and AdamW does not count it") {
    // Every dy is Inf in E5M2, until the scale has been halved often.
    const char* const recipe = "unscaled:overflow=nonsaturate:loss_scale=1e30";
    auto trainer = make_cpu_trainer(spec_of(recipe));
    auto before = make_cpu_trainer(spec_of("fp32"));
    const auto start = state_of(*before);
    int skipped = 0;
    while (skipped == trainer->steps_done() && skipped < 200) skipped = records_of(*trainer, 1)[0].skipped;
    REQUIRE(skipped > 0);
    REQUIRE(skipped == trainer->steps_done() - 1);
    // The first update of AdamW moves each weight that has a gradient by the learning rate.
    const auto now = state_of(*trainer);
    const double lr = trainer->spec().lr;
    double largest = 0;
    for (std::size_t i = 0; i < now.at("w1").size(); ++i)
        largest = std::max(largest, std::fabs(static_cast<double>(now.at("w1")[i] - start.at("w1")[i])));
    CHECK(largest == doctest::Approx(lr).epsilon(1e-3));
}

TEST_CASE("a resumed run with a scaler, an average or a percentile is the same to the byte") {
    for (const char* recipe :
         {"unscaled:overflow=nonsaturate:loss_scale=65536:growth_interval=3", "delayed:algo=ema0.9",
          "delayed:algo=p99", "delayed:algo=ema0.5:history=4", "current:amax=p99.9"})
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
            second->step(15);
            CHECK(state_of(*whole) == state_of(*second));
        }
}

TEST_CASE("a run that goes on without its scaler keeps the count of AdamW's updates") {
    const Scratch scratch, again;
    auto scaled = make_cpu_trainer(spec_of("unscaled:overflow=nonsaturate:loss_scale=1e30"));
    scaled->step(10);
    const float skipped = state_of(*scaled).at("loss_scale")[2];
    CHECK(skipped > 0);
    scaled->save(scratch.path);
    auto plain = make_cpu_trainer(spec_of("bf16"));
    plain->load(scratch.path);
    plain->step(1);
    CHECK(state_of(*plain).at("loss_scale")[2] == skipped);
}

TEST_CASE("a loss scale in a checkpoint that cannot be one is refused") {
    const Scratch scratch;
    auto trainer = make_cpu_trainer(spec_of("fp32:loss_scale=16"));
    trainer->step(1);
    trainer->save(scratch.path);
    const auto file = checkpoints_to_load(scratch.path)[0];
    for (const std::vector<float>& bad : {std::vector<float>{0, 0, 0},
                                          {-1, 0, 0},
                                          {NAN, 0, 0},
                                          {INFINITY, 0, 0},
                                          {1, -1, 0},
                                          {1, 0.5F, 0},
                                          {1, 0, NAN},
                                          {1, 0}}) {
        SafeTensors values = parse_safetensors(read_bytes(file), "checkpoint");
        values.tensors["loss_scale"] = {{bad.size()}, bad};
        write_file(file, to_safetensors(values));
        CHECK_THROWS_AS(trainer->load(scratch.path), Error);
    }
}
