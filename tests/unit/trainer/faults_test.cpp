// Faults on purpose (--poison, --init zero-last, zero_amax=inf, acc=) and the instruments that show them.
#include "core/nn/faults.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/base/error.h"
#include "core/trainer/checkpoint.h"
#include "core/trainer/cpu_trainer.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

TrainOptions teacher(const std::string& recipe, int steps = 60) {
    TrainOptions options;
    options.recipes = recipe;
    options.steps = steps;
    options.batch = 16;
    options.layers = std::vector<int>{8, 12, 1};
    return options;
}

std::vector<StepRecord> records_of(const TrainSpec& spec) {
    const auto trainer = make_cpu_trainer(spec);
    trainer->step(spec.steps);
    return trainer->snapshot().arms.back().records;
}

std::string refusal(const TrainOptions& options) {
    try {
        make_train_spec(options);
        return "";
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::usage);
        return error.what();
    }
}

std::vector<ParameterCheckpoint> saved(Trainer& trainer) {
    const Scratch scratch;
    trainer.save(scratch.path);
    return load_checkpoints(scratch.path, trainer.spec()).arms.back().parameters;
}

constexpr std::size_t kX1 = 0, kW1 = 1, kW2 = 4;  // in ModelPlan::tensors of two layers

}  // namespace

TEST_CASE("a poisoned step multiplies x of its first rows, and no other step's") {
    TrainOptions options = teacher("fp32", 4);
    const auto clean = records_of(make_train_spec(options));
    options.recipes = "delayed";
    const auto usual = records_of(make_train_spec(options));
    options.poison = "2:1e6:1";
    const auto one = records_of(make_train_spec(options));
    options.poison = "2:1000";
    const auto all = records_of(make_train_spec(options));
    for (const std::size_t step : {0U, 1U, 3U}) {
        CHECK(one[step].tensors[kX1].amax == usual[step].tensors[kX1].amax);
        CHECK(all[step].tensors[kX1].amax == usual[step].tensors[kX1].amax);
    }
    CHECK(all[2].tensors[kX1].amax == doctest::Approx(1000 * usual[2].tensors[kX1].amax).epsilon(1e-6));
    // The largest of the first row is not above that of the batch.
    CHECK(one[2].tensors[kX1].amax <= 1.001e6F * usual[2].tensors[kX1].amax);
    CHECK(one[2].tensors[kX1].amax > 1e4F * usual[2].tensors[kX1].amax);
    CHECK(clean[1].loss != clean[2].loss);
}

TEST_CASE(
    "a batch that a command poisons is multiplied in all rows, also where the run has a poisoned row of its "
    "own") {
    TrainOptions options = teacher("delayed", 4);
    const auto usual = records_of(make_train_spec(options));
    options.poison = "2:1e6:1";
    const auto trainer = make_cpu_trainer(make_train_spec(options));
    trainer->set(PoisonBatch{1000});
    trainer->step(2);
    const auto records = trainer->snapshot().arms[0].records;
    CHECK(records[0].tensors[kX1].amax == doctest::Approx(1000 * usual[0].tensors[kX1].amax).epsilon(1e-6));
    CHECK(records[1].tensors[kX1].amax == usual[1].tensors[kX1].amax);
}

TEST_CASE("one large row keeps a long amax history's scale small for as many steps as it is long") {
    TrainOptions options = teacher("delayed:history=8", 30);
    options.poison = "5:1e6:1";
    const auto records = records_of(make_train_spec(options));
    for (const StepRecord& record : records) {
        CAPTURE(record.step);
        const bool held = record.step > 5 && record.step <= 5 + 8;
        if (record.step != 5) CHECK((record.tensors[kX1].underflow_pct > 90) == held);
    }
}

TEST_CASE("with --init zero-last the weights of the last layer start at 0, the others as without") {
    TrainOptions options = teacher("fp32", 1);
    const auto usual = make_cpu_trainer(make_train_spec(options));
    options.init = "zero-last";
    const auto zero = make_cpu_trainer(make_train_spec(options));
    const auto a = saved(*usual), b = saved(*zero);
    REQUIRE(a.size() == 4);  // w1 b1 w2 b2
    CHECK(a[0].values == b[0].values);
    CHECK(std::ranges::count(a[2].values, 0.0F) == 0);
    CHECK(std::ranges::count(b[2].values, 0.0F) == 12);
    zero->step(1);
    CHECK(std::ranges::count(saved(*zero)[2].values, 0.0F) == 0);
}

TEST_CASE("an infinite scale of a weight that is all zeros makes NaN, kept scales train") {
    TrainOptions options = teacher("current:zero_amax=inf");
    options.init = "zero-last";
    const auto trainer = make_cpu_trainer(make_train_spec(options));
    trainer->step(3);
    REQUIRE(trainer->stopped(0));
    CHECK(trainer->stopped(0)->tensor == "w2");
    CHECK(trainer->stopped(0)->step == 0);
    const Snapshot snapshot = trainer->snapshot();
    CHECK(std::isinf(snapshot.arms[0].records.front().tensors[kW2].scale));
    for (const char* recipe : {"current", "current:zero_amax=keep", "delayed"}) {
        options.recipes = recipe;
        const auto other = make_cpu_trainer(make_train_spec(options));
        other->step(3);
        CHECK_FALSE(other->stopped(0));
    }
    // Delayed scaling computes the scale behind the cast: the zeros of step 0 spoil step 1.
    options.recipes = "delayed:zero_amax=inf";
    const auto delayed = make_cpu_trainer(make_train_spec(options));
    delayed->step(3);
    REQUIRE(delayed->stopped(0));
    CHECK(delayed->stopped(0)->step == 1);
    CHECK(delayed->stopped(0)->tensor == "w2");
}

TEST_CASE("without zeros zero_amax changes nothing") {
    const auto a = records_of(make_train_spec(teacher("delayed", 20))),
               b = records_of(make_train_spec(teacher("delayed:zero_amax=inf", 20)));
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i].loss == b[i].loss);
}

TEST_CASE("the instruments of an update: moved weights are those that two checkpoints differ in") {
    for (const char* recipe : {"fp32", "delayed", "delayed:master=none"}) {
        CAPTURE(recipe);
        TrainOptions options = teacher(recipe);
        options.lr = 1e-3;
        const TrainSpec spec = make_train_spec(options);
        const auto trainer = make_cpu_trainer(spec);
        trainer->step(kInstrumentSteps);
        const auto before = saved(*trainer);
        trainer->step(1);
        const auto after = saved(*trainer);
        const auto records = trainer->snapshot().arms[0].records;
        for (const auto& [tensor, parameter] : {std::pair{kW1, 0U}, {kW2, 2U}}) {
            const auto& a = before[parameter].values;
            const auto& b = after[parameter].values;
            int moved = 0;
            for (std::size_t i = 0; i < a.size(); ++i) moved += a[i] != b[i];
            CHECK(records.back().tensors[tensor].moved_pct ==
                  doctest::Approx(100.0 * moved / static_cast<double>(a.size())));
            CHECK(std::isnan(records[kInstrumentSteps - 1].tensors[tensor].moved_pct));
        }
        CHECK(std::isnan(records.back().tensors[kX1].moved_pct));
    }
}

TEST_CASE(
    "products are off by their rounding to BF16, or by a narrow accumulator, which grows with fewer bits") {
    const auto of = [](const std::string& recipe) {
        return static_cast<double>(
            records_of(make_train_spec(teacher(recipe)))[50].tensors[kW1].product_error_pct);
    };
    CHECK(of("fp32") < 1e-4);
    CHECK(of("delayed:out=fp32") < 1e-4);
    // Rounding to 8 bits is off by 2^-9 at most, and by a third of its square on average over a binade.
    CHECK(of("delayed") > 0.1);
    CHECK(of("delayed") < 100 * 0x1p-9);
    // The product is computed in parts of 256 rows: more of them, and other numbers of rows, are off alike.
    TrainOptions wide = teacher("delayed", 1);
    wide.batch = 300, wide.layers = std::vector<int>{8, 513, 1};
    const float off = records_of(make_train_spec(wide))[0].tensors[kW1].product_error_pct;
    CHECK(off > 0.1F);
    CHECK(off < 100 * 0x1p-9F);
    const double five = of("delayed:acc=5:out=fp32"), three = of("delayed:acc=3:out=fp32");
    CHECK(five > 0.5);
    CHECK(three > 2 * five);
    CHECK(std::isnan(records_of(make_train_spec(teacher("delayed")))[49].tensors[kW1].product_error_pct));
}

TEST_CASE("the command line repeats a run with its faults") {
    TrainOptions options = teacher("delayed:zero_amax=inf:acc=3");
    options.poison = "7:1e6:2";
    options.init = "zero-last";
    const std::string line = command_line(make_train_spec(options));
    CHECK(line.find("--recipe delayed:zero_amax=inf:acc=3 ") != line.npos);
    CHECK(line.find(" --poison 7:1e+06:2 --init zero-last") != line.npos);
    CHECK(command_line(make_train_spec(teacher("delayed"))).find("poison") == line.npos);
}

TEST_CASE("faults that no training can have are refused in one sentence") {
    const auto poison = [](const std::string& text) {
        TrainOptions options = teacher("delayed");
        options.poison = text;
        return refusal(options);
    };
    for (const char* text : {"5", "x:2", "5:", "5:2:3:4", "-1:2", "5:2:1x"})
        CHECK(poison(text) == "--poison: '" + std::string(text) + "' is not STEP:FACTOR[:ROWS]");
    CHECK(poison("60:2") == "--poison: step 60 is not in 0..59");
    CHECK(poison("5:2:17") == "--poison: 17 rows; the batch has 16");
    CHECK(poison("5:2:0") == "--poison: 0 rows");
    for (const char* text : {"5:0", "5:-1", "5:inf", "5:nan", "5:1e60"})
        CHECK(poison(text).find("is not finite and above 0") != std::string::npos);
    TrainOptions options = teacher("delayed");
    options.init = "zeros";
    CHECK(refusal(options) == "--init: 'zeros' is not zero-last");
    TrainOptions tokens;
    tokens.model = "transformer";
    tokens.poison = "5:2:1";
    CHECK(refusal(tokens) == "--poison: of --model transformer takes the whole batch: STEP:FACTOR");
    tokens.poison = "5:2";
    CHECK(refusal(tokens).empty());
    tokens.init = "zero-last";
    CHECK(refusal(tokens) == "--init: zero-last is of --model mlp");
    tokens.init.clear();
    tokens.recipes = "delayed:acc=3";
    CHECK(refusal(tokens).find("option 'acc' is unknown to this model") != std::string::npos);
    for (const char* recipe : {"delayed:acc=1", "delayed:acc=23", "delayed:acc=bf16", "mxfp8:zero_amax=inf",
                               "rowwise:zero_amax=inf"})
        CHECK(refusal(teacher(recipe)).find("--recipe") == 0);
}
