// Arms that train a transformer: what holds for the MLP holds for it.
#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/nn/models/transformer/model.h"
#include "core/nn/recipe_casts.h"
#include "core/nn/tokens/zipf.h"
#include "core/threads/parallel.h"
#include "core/trainer/cpu_trainer.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

TrainSpec small(const std::string& recipes, const std::string& task = "copying", std::uint64_t seed = 1) {
    TrainOptions options;
    options.model = "transformer";
    options.task = task;
    options.sizes = {{"d", 16}, {"heads", 2}, {"ffn", 24}, {"context", 32}, {"blocks", 2}};
    options.batch = 2;
    options.steps = 60;
    options.recipes = recipes;
    options.seed = seed;
    return make_train_spec(options);
}

std::vector<std::vector<double>> losses(Trainer& trainer) {
    std::vector<std::vector<double>> all;
    for (const ArmSnapshot& arm : trainer.snapshot().arms) {
        all.emplace_back();
        for (const StepRecord& r : arm.records) all.back().push_back(r.loss);
    }
    return all;
}

std::vector<std::vector<double>> trained(const TrainSpec& spec, int steps = 12) {
    auto trainer = make_cpu_trainer(spec);
    trainer->step(steps);
    return losses(*trainer);
}

// What the second run does after the state of the first, and what one run without interruption does.
void check_resumed(const std::string& before, const std::string& after, bool exact) {
    const Scratch scratch;
    auto first = make_cpu_trainer(small(before));
    first->step(7);
    first->save(scratch.path);
    auto second = make_cpu_trainer(small(after));
    second->load(scratch.path);
    CHECK(second->steps_done() == 7);
    second->step(5);
    const auto resumed = losses(*second);
    first->step(5);
    const auto whole = losses(*first);
    REQUIRE(resumed[0].size() == 5);
    for (std::size_t i = 0; i < 5; ++i) {
        CAPTURE(i);
        if (exact)
            CHECK(resumed[0][i] == whole[0][7 + i]);
        else
            CHECK(resumed[0][i] == doctest::Approx(whole[0][7 + i]).epsilon(0.05));
    }
}

const char* const kRecipes =
    "fp32,bf16,delayed,current,rowwise,block128,mxfp8,mxfp4,nvfp4-te,delayed:scope=all:act=smooth,"
    "nvfp4:scope=attn:wide=1,delayed:act=clamp:master=none";

}  // namespace

TEST_CASE(
    "a transformer trains with every recipe, and the same seed gives the same losses with 1, 2 and 3 "
    "threads") {
    const int before = threads();
    const TrainSpec spec = small(kRecipes);
    set_threads(1);
    const auto expected = trained(spec);
    for (const auto& arm : expected)
        for (const double loss : arm) CHECK(std::isfinite(loss));
    for (const int count : {2, 3}) {
        set_threads(count);
        CHECK(trained(spec) == expected);
    }
    set_threads(before);
    CHECK(trained(small(kRecipes, "copying", 2)) != expected);
}

TEST_CASE("an arm does not depend on the arms beside it") {
    const auto together = trained(small("bf16,delayed:scope=attn,nvfp4-te"));
    CHECK(trained(small("nvfp4-te"))[0] == together[2]);
    CHECK(trained(small("delayed:scope=attn"))[0] == together[1]);
}

TEST_CASE("a resumed transformer goes on as the run without interruption, BF16 goes on in FP8 and back") {
    for (const char* recipe : {"bf16", "delayed:scope=all", "nvfp4-te:act=smooth", "current:master=none"}) {
        CAPTURE(recipe);
        check_resumed(recipe, recipe, true);
    }
    check_resumed("bf16", "delayed", false);
    check_resumed("delayed", "bf16", false);
}

TEST_CASE("a checkpoint names what does not fit") {
    const Scratch scratch;
    auto trainer = make_cpu_trainer(small("bf16"));
    trainer->save(scratch.path);
    TrainOptions options;
    options.model = "transformer";
    auto other = make_cpu_trainer(make_train_spec(options));
    CHECK_THROWS_AS(other->load(scratch.path), Error);
    CHECK_THROWS_AS(make_cpu_trainer(make_train_spec({}))->load(scratch.path), Error);
}

TEST_CASE("poison reaches the first tensor, and an arm that breaks says where") {
    auto trainer = make_cpu_trainer(small("bf16,delayed"));
    trainer->set(PoisonBatch{std::numeric_limits<float>::infinity()});
    trainer->step(3);
    for (int arm = 0; arm < 2; ++arm) {
        REQUIRE(trainer->stopped(arm));
        CHECK(trainer->stopped(arm)->tensor == "1.qkv.x");
        CHECK(trainer->stopped(arm)->step == 0);
    }
    auto plain = make_cpu_trainer(small("bf16")), poisoned = make_cpu_trainer(small("bf16"));
    poisoned->set(PoisonBatch{1000});
    plain->step(3), poisoned->step(3);
    const auto a = losses(*plain), b = losses(*poisoned);
    CHECK(a[0][0] != b[0][0]);
    CHECK(std::isfinite(b[0][2]));
}

TEST_CASE("held-out loss and a sample come at each fiftieth step and at the last") {
    TrainSpec spec = small("bf16,delayed:scope=all,fp32", "text");
    auto trainer = make_cpu_trainer(spec);
    trainer->step(49);
    CHECK_FALSE(trainer->snapshot().arms[0].evaluation);
    trainer->step();
    const auto at_50 = trainer->snapshot().arms[1].evaluation;
    REQUIRE(at_50);
    CHECK(at_50->step == 50);
    CHECK(at_50->prompt == "a gradient ");
    CHECK(at_50->continuation.size() == kSampleLength);
    CHECK(at_50->expected.empty());
    CHECK(at_50->loss > 1);
    CHECK(at_50->loss < std::log(55.0) + 0.1);
    trainer->step(10);
    CHECK(trainer->snapshot().arms[1].evaluation->step == 60);
}

TEST_CASE("an evaluation is cast with the scales that there are, and leaves no amax and no record") {
    const TensorId id{0};
    Matrix<float> value(4, 4), large(4, 4);
    for (std::size_t i = 0; i < 16; ++i) value.values[i] = static_cast<float>(i), large.values[i] = 1e4F;
    const auto scale_after = [&](bool evaluates) {
        RecipeCasts casts(parse_recipe("delayed"), transformer_plan({.vocabulary = 5}), 1);
        for (int step = 0; step < 2; ++step) {
            casts.begin_step(step, {});
            casts.operand(id, Along::cols, value);
            casts.end_step();
            if (!evaluates) continue;
            casts.begin_evaluation();
            CHECK(casts.operand(id, Along::cols, large).values[0] ==
                  448 / casts.delayed(id)->scale());  // saturated
        }
        return casts.delayed(id)->scale();
    };
    CHECK(scale_after(false) == doctest::Approx(448.0 / 15));
    CHECK(scale_after(true) == scale_after(false));
}

TEST_CASE("copying is sampled greedily, beside the one right answer") {
    auto trainer = make_cpu_trainer(small("bf16"));
    trainer->step(60);
    const auto sample = trainer->snapshot().arms[0].evaluation;
    REQUIRE(sample);
    CHECK(sample->prompt.size() + sample->expected.size() == 32);
    CHECK(sample->continuation.size() == sample->expected.size());
    const std::string whole = sample->prompt + sample->expected;
    const std::size_t period = whole.find(whole[0], 1);
    REQUIRE(period < sample->prompt.size());
    for (std::size_t i = period; i < whole.size(); ++i) CHECK(whole[i] == whole[i - period]);
}

TEST_CASE("records have kurtosis: 3 for normal weights, and none where a recipe casts nothing") {
    auto trainer = make_cpu_trainer(small("bf16,fp32"));
    trainer->step();
    const Snapshot snapshot = trainer->snapshot();
    const ModelPlan plan = model_plan(trainer->spec());
    const auto id = plan.find("1.gate_up.w");
    REQUIRE(id);
    CHECK(snapshot.arms[0].records[0].tensors[id->index].kurtosis == doctest::Approx(3).epsilon(0.25));
    CHECK(std::isnan(snapshot.arms[1].records[0].tensors[id->index].kurtosis));
}

TEST_CASE(
    "tokens of a Markov chain are learnt beyond their frequencies, and no further than their entropy rate") {
    TrainOptions options;
    options.model = "transformer";
    options.task = "zipf:257";
    options.sizes = {{"d", 32}, {"heads", 2}, {"ffn", 96}, {"blocks", 1}};
    options.steps = 200;
    options.recipes = "bf16";
    const TrainSpec spec = make_train_spec(options);
    auto trainer = make_cpu_trainer(spec);
    const ZipfLanguage language(257);
    trainer->step(200);
    const ArmSnapshot arm = trainer->snapshot().arms[0];
    CHECK(arm.records.front().loss == doctest::Approx(std::log(257)).epsilon(0.05));
    REQUIRE(arm.evaluation);
    MESSAGE("first loss " << arm.records.front().loss << ", held-out " << arm.evaluation->loss);
    CHECK(arm.evaluation->step == 200);
    CHECK(arm.evaluation->loss < language.entropy() - 0.1);
    CHECK(arm.evaluation->loss > language.entropy_rate());
    CHECK(arm.evaluation->prompt.empty());  // tokens are no characters
    CHECK(arm.evaluation->continuation.empty());
}

TEST_CASE(
    "a training on tokens of a Markov chain is the same again and resumes, and its rarest token is the "
    "last") {
    const TrainSpec spec = small("bf16,delayed:scope=head", "zipf:100");
    CHECK(make_task(spec)->rarest() == 99);
    CHECK(make_task(spec)->symbols().empty());
    const auto expected = trained(spec);
    CHECK(trained(spec) == expected);
    CHECK(trained(small("bf16,delayed:scope=head", "zipf:100", 2)) != expected);
    const Scratch scratch;
    auto first = make_cpu_trainer(spec);
    first->step(7);
    first->save(scratch.path);
    auto second = make_cpu_trainer(spec);
    second->load(scratch.path);
    second->step(5);
    const auto resumed = losses(*second);
    for (std::size_t arm = 0; arm < 2; ++arm)
        CHECK(resumed[arm] == std::vector(expected[arm].begin() + 7, expected[arm].end()));
    second->set(AlignChannel{});
    second->step(1);
    CHECK(std::isfinite(losses(*second)[0][0]));
    CHECK_THROWS_AS(make_cpu_trainer(small("bf16", "zipf:101"))->load(scratch.path), Error);
}
