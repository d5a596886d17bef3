// Arms that train a mixture of experts: what holds for the other models holds for it.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "core/base/error.h"
#include "core/files/files.h"
#include "core/nn/models/moe/model.h"
#include "core/threads/parallel.h"
#include "core/trainer/checkpoint.h"
#include "core/trainer/cpu_trainer.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

TrainSpec small(const std::string& recipes, const std::map<std::string, std::string>& given = {}) {
    TrainOptions options;
    options.model = "moe";
    options.task = "zipf:50";
    options.warmup = 2;
    options.sizes = {{"d", 16}, {"heads", 2}, {"ffn", 24}, {"context", 32}, {"blocks", 2}, {"experts", 4}};
    for (const ModelOption& option : find_model("moe").options)
        if (const auto at = given.find(std::string(option.name)); at != given.end())
            options.sizes[at->first] = option.read(at->second);
    options.batch = 2;
    options.steps = 60;
    options.recipes = recipes;
    return make_train_spec(options);
}

const char* const kRecipes =
    "fp32,bf16,delayed:router=delayed,current,rowwise,block128,mxfp8:router=nvfp4,nvfp4-te,"
    "delayed:scope=all:act=smooth:router=bf16,delayed:act=clamp:master=none";

// The bytes of the checkpoints after so many steps.
std::vector<std::string> checkpoints(Trainer& trainer) {
    const Scratch scratch;
    trainer.save(scratch.path);
    std::vector<std::string> out;
    for (const auto& file : checkpoints_to_save(scratch.path, trainer.spec())) out.push_back(read_text(file));
    return out;
}

}  // namespace

TEST_CASE(
    "a mixture of experts trains with every kind of recipe, with the same bytes with 1, 2 and 3 threads") {
    const int before = threads();
    for (const char* balance : {"bias", "loss"}) {
        CAPTURE(balance);
        const TrainSpec spec = small(kRecipes, {{"balance", balance}, {"shared", "1"}});
        const auto train = [&](int count) {
            set_threads(count);
            auto trainer = make_cpu_trainer(spec);
            trainer->step(12);
            for (const ArmSnapshot& arm : trainer->snapshot().arms) {
                CHECK_FALSE(arm.stopped);
                CHECK(arm.records.back().loss < arm.records.front().loss);
            }
            return checkpoints(*trainer);
        };
        const auto one = train(1);
        CHECK((train(2) == one));
        CHECK((train(3) == one));
    }
    set_threads(before);
}

TEST_CASE("a training of experts that is resumed has the bytes of one without interruption") {
    const TrainSpec spec = small(kRecipes, {{"starve-from", "5"}, {"starve-to", "9"}});
    auto first = make_cpu_trainer(spec);
    first->step(7);
    const Scratch scratch;
    first->save(scratch.path);
    auto second = make_cpu_trainer(spec);
    second->load(scratch.path);
    first->step(5);
    second->step(5);
    CHECK((checkpoints(*second) == checkpoints(*first)));
}

TEST_CASE("no optimiser changes a router's bias, and a decay of the weights does not") {
    TrainSpec spec = small("fp32", {{"bias-rate", "0.25"}});
    spec.weight_decay = 1, spec.lr = 0.1;
    auto trainer = make_cpu_trainer(spec);
    trainer->step(3);
    const Scratch scratch;
    trainer->save(scratch.path);
    const ArmCheckpoint arm = load_checkpoints(scratch.path, spec).arms[0];
    const auto& names = model_plan(spec).parameters;
    int biases = 0;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (names[i].optimised) continue;
        ++biases;
        CHECK(names[i].name.ends_with(".router.bias"));
        CHECK(arm.parameters[i].moments.m.empty());
        for (const float b : arm.parameters[i].values) CHECK(b == std::round(b * 4) / 4);
        CHECK(std::ranges::any_of(arm.parameters[i].values, [](float b) { return b != 0; }));
    }
    CHECK(biases == 2);
}

TEST_CASE("an arm whose router gives NaN stops, and names the router") {
    const TrainSpec spec = small("fp32");
    const Scratch scratch;
    auto trainer = make_cpu_trainer(spec);
    ArmCheckpoint start;
    {
        trainer->save(scratch.path);
        start = load_checkpoints(scratch.path, spec).arms[0];
    }
    const auto& names = model_plan(spec).parameters;
    for (std::size_t i = 0; i < names.size(); ++i)
        if (names[i].name == "1.router.w") std::ranges::fill(start.parameters[i].values, 3e38F);
    save_checkpoints(
        scratch.path, spec, [&](std::size_t) { return start; }, 0);
    trainer->load(scratch.path);
    trainer->step(1);
    REQUIRE(trainer->stopped(0));
    CHECK(to_string(*trainer->stopped(0)) == "1.router became non-finite at step 0");
}

TEST_CASE("micro-batches and ranks of experts count their rows together") {
    const auto biases = [](int micro_batches, int ranks) {
        TrainSpec spec = small("fp32");
        spec.accumulate.micro_batches = micro_batches;
        spec.ranks.count = ranks;
        auto trainer = make_cpu_trainer(spec);
        trainer->step(1);
        const Scratch scratch;
        trainer->save(scratch.path);
        const ArmCheckpoint arm = load_checkpoints(scratch.path, spec).arms[0];
        std::vector<float> out;
        const auto& names = model_plan(spec).parameters;
        for (std::size_t i = 0; i < names.size(); ++i)
            if (!names[i].optimised)
                out.insert(out.end(), arm.parameters[i].values.begin(), arm.parameters[i].values.end());
        return out;
    };
    const std::vector<float> whole = biases(1, 1);
    CHECK(std::ranges::any_of(whole, [](float b) { return b != 0; }));
    CHECK(biases(2, 1) == whole);
    CHECK(biases(1, 2) == whole);
}

TEST_CASE("a weight of an expert that gets its first rows in a later micro-batch is cast in each step") {
    TrainOptions options;
    options.model = "moe";
    options.task = "zipf:50";
    options.sizes = {{"d", 16}, {"heads", 2}, {"ffn", 24}, {"context", 8}, {"experts", 16}, {"active", 1}};
    options.batch = 4;
    options.accumulate = 4;
    options.steps = 12;
    options.lr = 0.05;
    options.recipes = "current";
    const auto bytes = [&](const char* cache) {
        options.weight_cache = cache;
        const TrainSpec spec = make_train_spec(options);
        auto trainer = make_cpu_trainer(spec);
        trainer->step(spec.steps);
        std::vector<std::vector<float>> out;
        const Scratch scratch;
        trainer->save(scratch.path);
        const LoadedCheckpoints saved = load_checkpoints(scratch.path, spec);
        for (const auto& p : saved.arms.front().parameters) out.push_back(p.values);
        return out;
    };
    CHECK(bytes("once") == bytes("each"));
}

TEST_CASE("what experts cannot be trained with is refused in a sentence") {
    const auto refusal = [](const std::function<void()>& what) {
        try {
            what();
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::usage);
            return std::string(error.what());
        }
        return std::string();
    };
    TrainOptions options;
    options.model = "moe";
    options.batch = 4;
    options.ranks = 2;
    options.recipes = "current";
    CHECK(refusal([&] { make_train_spec(options); }).empty());
    options.recipes = "bf16,delayed";
    CHECK(refusal([&] { make_train_spec(options); }).find("no delayed scales on several ranks") !=
          std::string::npos);
    CHECK(refusal([] {
              small("bf16", {{"bias-rate", "1e-7"}});
          }).find("1e-7 is too small") != std::string::npos);
    CHECK(refusal([] { small("bf16", {{"bias-rate", "0"}}); }).empty());
}
