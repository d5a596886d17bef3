#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/nn/models/mlp/network.h"
#include "core/nn/models/mlp/tensors.h"
#include "core/nn/recipe_casts.h"
#include "core/trainer/cpu_trainer.h"

using namespace fp8lab;

namespace {

// What casts know of a network with so many layers; they know no sizes.
ModelPlan plan_of(int layers) { return mlp_plan(std::vector<int>(static_cast<std::size_t>(layers) + 1, 8)); }

TrainSpec small(const std::string& recipes, std::string task = "teacher") {
    TrainOptions options;
    options.task = task;
    options.recipes = recipes;
    options.steps = 100;
    options.layers = task == "spiral" ? std::vector{2, 24, 2} : std::vector{8, 24, 3};
    options.batch = 40;
    return make_train_spec(options);
}

std::vector<StepRecord> records_of(const TrainSpec& spec, int steps, std::size_t arm = 0,
                                   const std::vector<Command>& commands_at_5 = {}) {
    auto trainer = make_cpu_trainer(spec);
    for (int s = 0; s < steps; ++s) {
        if (s == 5)
            for (const Command& command : commands_at_5) trainer->set(command);
        trainer->step();
    }
    return trainer->snapshot().arms[arm].records;
}

float scale_of(const StepRecord& record, std::size_t tensor) { return record.tensors[tensor].scale; }

// Column `index` of `losses`, the way a reader of the CSV would see it.
std::vector<double> losses(const std::vector<StepRecord>& records) {
    std::vector<double> all;
    for (const StepRecord& record : records) all.push_back(record.loss);
    return all;
}

}  // namespace

TEST_CASE("every recipe trains some steps with finite, falling losses") {
    for (const Recipe& recipe : recipes()) {
        CAPTURE(recipe.name);
        const auto records = records_of(small(recipe.name), 60);
        REQUIRE(records.size() == 60);
        for (const StepRecord& record : records) CHECK(std::isfinite(record.loss));
        CHECK(records.back().loss < 0.9 * records.front().loss);
        CHECK(records.front().tensors.size() == 6);
        CHECK(records.front().tensors[0].applies == (recipe.name != "fp32"));
    }
}

TEST_CASE("two runs of one spec give the same numbers, stochastic rounding included") {
    for (const std::string recipe : {"delayed", "nvfp4", "delayed:master=none:round_update=stochastic"}) {
        CAPTURE(recipe);
        CHECK(losses(records_of(small(recipe), 20)) == losses(records_of(small(recipe), 20)));
        TrainSpec other = small(recipe);
        other.seed = 2;
        CHECK(losses(records_of(small(recipe), 20)) != losses(records_of(other, 20)));
    }
}

TEST_CASE("arms start from the same weights and see the same batches") {
    auto trainer = make_cpu_trainer(small("fp32,bf16,delayed,fp32"));
    trainer->step(10);
    const Snapshot snapshot = trainer->snapshot();
    CHECK(losses(snapshot.arms[0].records) == losses(snapshot.arms[3].records));
    const double exact = snapshot.arms[0].records[0].loss;
    CHECK(snapshot.arms[1].records[0].loss == doctest::Approx(exact).epsilon(0.01));
    CHECK(snapshot.arms[2].records[0].loss == doctest::Approx(exact).epsilon(0.05));
    for (std::size_t step = 0; step < 10; ++step)  // x1 is the batch: its amax is the same in every arm
        CHECK(snapshot.arms[1].records[step].tensors[0].amax ==
              snapshot.arms[2].records[step].tensors[0].amax);
}

TEST_CASE("a linear layer multiplies what its recipe made of x and w, and rounds to BF16") {
    // fprop of `current` with the scalar codec and float64 sums: scale = 448 / amax, E4M3, output BF16.
    const FormatInfo &e4m3 = find_format("e4m3"), &bf16 = find_format("bf16");
    const int sizes[] = {6, 4};
    Network<float> network(sizes, Activation::tanh);
    network.initialise(5);
    Matrix<float> x(3, 6);
    for (std::size_t i = 0; i < x.values.size(); ++i) x.values[i] = 0.37F * static_cast<float>(i) - 2.9F;
    RecipeCasts casts(parse_recipe("current"), plan_of(1), 1);
    casts.begin_step(0, {});
    const Matrix<float> y = network.forward(x, casts);
    const auto cast = [&](const Matrix<float>& m, std::size_t i) {
        float largest = 0;
        for (const float v : m.values) largest = std::max(largest, std::abs(v));
        const float scale = 448.0F / largest;
        return static_cast<double>(decode(e4m3, encode(e4m3, m.values[i] * scale)) * (1.0F / scale));
    };
    for (std::size_t r = 0; r < 3; ++r)
        for (std::size_t c = 0; c < 4; ++c) {
            double sum = 0;
            for (std::size_t k = 0; k < 6; ++k)
                sum += cast(x, r * 6 + k) * cast(network.layers()[0].w, c * 6 + k);
            const float rounded = decode(bf16, encode(bf16, static_cast<float>(sum)));
            CHECK(y.row(r)[c] ==
                  doctest::Approx(rounded).epsilon(0.004));  // one BF16 step where FP32 sums differ
            CHECK(decode(bf16, encode(bf16, y.row(r)[c])) == y.row(r)[c]);
        }
}

TEST_CASE("wgrad=bf16 rounds the weight gradient to BF16 and nothing else, without it the gradient is FP32") {
    const FormatInfo& bf16 = find_format("bf16");
    const int sizes[] = {6, 5, 4};
    Matrix<float> x(7, 6), dy(7, 4);
    for (std::size_t i = 0; i < x.values.size(); ++i) x.values[i] = 0.37F * static_cast<float>(i) - 2.9F;
    for (std::size_t i = 0; i < dy.values.size(); ++i) dy.values[i] = 0.01F * static_cast<float>(i) - 0.1F;
    const auto trained = [&](const std::string& recipe) {
        Network<float> network(sizes, Activation::tanh);
        network.initialise(5);
        RecipeCasts casts(parse_recipe(recipe), plan_of(2), 1);
        casts.begin_step(0, {});
        network.forward(x, casts);
        network.backward(dy, casts);
        return network.layers();
    };
    const auto plain = trained("delayed"), rounded = trained("delayed:wgrad=bf16");
    for (std::size_t l = 0; l < 2; ++l) {
        std::size_t moved = 0;
        for (std::size_t i = 0; i < plain[l].dw.values.size(); ++i) {
            const float g = plain[l].dw.values[i];
            CHECK(rounded[l].dw.values[i] == decode(bf16, encode(bf16, g)));
            moved += rounded[l].dw.values[i] != g;
        }
        CHECK(moved > plain[l].dw.values.size() / 2);
        CHECK(rounded[l].db == plain[l].db);
        CHECK(rounded[l].dy.values == plain[l].dy.values);
    }
}

TEST_CASE("block recipes cast a tensor anew along each contraction dimension, per-tensor ones once") {
    // x = 1 but for one outlier in row 0: along the columns its block is row 0, along the rows it is its
    // column.
    Matrix<float> x(32, 32);
    for (float& v : x.values) v = 1.0F / 3;
    x.values[0] = 1000;
    const auto changed = [&](const std::string& recipe, Along along) {
        RecipeCasts casts(parse_recipe(recipe), plan_of(1), 1);
        casts.begin_step(0, {});
        casts.operand(MlpTensor{TensorClass::x, 1}, Along::cols, x);
        const Matrix<float>& out = casts.operand(MlpTensor{TensorClass::x, 1}, along, x);
        return std::pair{out.values[1] != out.values[33],
                         out.values[32] != out.values[33]};  // along row 0, column 0
    };
    CHECK(changed("mxfp8:fwd=e2m3", Along::cols) == std::pair{true, false});
    CHECK(changed("mxfp8:fwd=e2m3", Along::rows) == std::pair{false, true});
    CHECK(changed("current", Along::cols) == changed("current", Along::rows));
}

TEST_CASE("delayed scaling casts with the scale of before and learns from the unscaled amax") {
    const auto records = records_of(small("delayed:history=1"), 4);
    for (std::size_t tensor = 0; tensor < 6; ++tensor) {
        CAPTURE(tensor);
        const float largest = tensor % 3 == 2 ? 57344.0F : 448.0F;  // dy is E5M2
        CHECK(scale_of(records[0], tensor) == 1.0F);
        for (std::size_t step = 1; step < 4; ++step)
            CHECK(scale_of(records[step], tensor) == largest / records[step - 1].tensors[tensor].amax);
    }
}

TEST_CASE("a new margin shows in the scale after the next update, a new history and algorithm too") {
    const auto before = records_of(small("delayed:history=8"), 10);
    const auto margin = records_of(small("delayed:history=8"), 10, 0, {SetMargin{0, 1}});
    CHECK(scale_of(margin[5], 0) == scale_of(before[5], 0));
    CHECK(scale_of(margin[6], 0) == scale_of(before[6], 0) / 2);
    const auto recent = records_of(small("delayed:history=8"), 10, 0, {SetAlgo{0, AmaxAlgo::most_recent}});
    CHECK(scale_of(recent[6], 0) == 448.0F / recent[5].tensors[0].amax);
    const auto short_history = records_of(small("delayed:history=8"), 10, 0, {SetHistory{0, 1}});
    CHECK(scale_of(short_history[7], 0) == 448.0F / short_history[6].tensors[0].amax);
    CHECK_THROWS_AS(records_of(small("delayed"), 10, 0, {SetMargin{1, 1}}), Error);  // there is no arm 1
}

TEST_CASE("a poisoned batch is multiplied once") {
    const auto clean = records_of(small("bf16"), 8),
               poisoned = records_of(small("bf16"), 8, 0, {PoisonBatch{1000}});
    CHECK(poisoned[5].tensors[0].amax == doctest::Approx(1000 * clean[5].tensors[0].amax));
    CHECK(poisoned[4].loss == clean[4].loss);
    CHECK(poisoned[6].tensors[0].amax == clean[6].tensors[0].amax);
}

TEST_CASE("the precision switch keeps the weights, a learning rate of zero stops learning") {
    const auto switched = records_of(small("bf16"), 8, 0, {SetRecipe{0, parse_recipe("current")}});
    const auto stayed = records_of(small("bf16"), 8);
    CHECK(switched[4].loss == stayed[4].loss);
    CHECK(switched[5].loss == doctest::Approx(stayed[5].loss).epsilon(0.05));
    CHECK(switched[5].loss != stayed[5].loss);
    CHECK(scale_of(switched[5], 1) != 1.0F);
    TrainSpec noise = small("fp32", "noise");
    const auto frozen = records_of(noise, 8, 0, {SetLearningRate{0}});
    CHECK(frozen[5].loss == frozen[7].loss);
    CHECK(frozen[4].loss != frozen[5].loss);
}

TEST_CASE("an arm that becomes non-finite stops with its first bad tensor, the others go on") {
    auto trainer =
        make_cpu_trainer(small("delayed:overflow=nonsaturate,bf16,delayed:overflow=nonsaturate:margin=3"));
    trainer->step(20);
    const Snapshot snapshot = trainer->snapshot();
    REQUIRE(snapshot.arms[0].stopped);
    CHECK(snapshot.arms[0].stopped->step < 5);
    CHECK(std::isnan(snapshot.arms[0].records.back().loss));
    CHECK(snapshot.arms[0].records.back().step == snapshot.arms[0].stopped->step);
    CHECK(snapshot.arms[1].records.size() == 20);
    CHECK_FALSE(snapshot.arms[1].stopped);
    CHECK_FALSE(snapshot.arms[2].stopped);
    CHECK_FALSE(trainer->all_stopped());
}

TEST_CASE("the first non-finite tensor is named where it arose") {
    // Inf in the batch shows in x1; a learning rate beyond float32 shows in the updated weights.
    auto poisoned = make_cpu_trainer(small("fp32"));
    poisoned->set(PoisonBatch{std::numeric_limits<float>::infinity()});
    poisoned->step();
    CHECK(poisoned->stopped(0)->tensor == "x1");
    auto rash = make_cpu_trainer(small("fp32"));
    rash->set(SetLearningRate{1e39});
    rash->step();
    CHECK(rash->stopped(0)->tensor == "w1");
    CHECK(rash->all_stopped());
}

TEST_CASE("a step without a backward pass has no statistics of dy, those of before are not repeated") {
    for (const std::string recipe : {"delayed", "current", "mxfp8", "fp32"}) {
        CAPTURE(recipe);
        auto trainer = make_cpu_trainer(small(recipe));
        trainer->step(3);
        trainer->set(PoisonBatch{std::numeric_limits<float>::quiet_NaN()});
        trainer->step();
        const auto records = trainer->snapshot().arms[0].records;
        REQUIRE(trainer->stopped(0));
        REQUIRE(records.size() == 4);
        for (std::size_t t = 0; t < 6; ++t) {
            CAPTURE(t);
            const TensorRecord &before = records[2].tensors[t], &last = records[3].tensors[t];
            CHECK(last.applies == (recipe != "fp32"));
            if (t % 3 != 2) continue;
            for (const float number :
                 {last.amax, last.scale, last.underflow_pct, last.overflow_pct, last.sqnr_db})
                CHECK(std::isnan(number));
            if (recipe != "fp32") CHECK(before.amax > 0);
        }
        if (recipe != "fp32") CHECK(records[3].tensors[0].underflow_pct >= 0);  // x was cast
    }
}

TEST_CASE("a command that no training could follow is refused where it is given, and changes nothing") {
    const TrainSpec spec = small("delayed,current");
    auto trainer = make_cpu_trainer(spec), untouched = make_cpu_trainer(spec);
    Recipe no_history = parse_recipe("delayed"), no_interval = no_history,
           far_margin = parse_recipe("current"), nameless = no_history;
    no_history.history = 0;
    no_interval.interval = 0;
    far_margin.margin = 17;
    nameless.base = "dalayed";
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const std::vector<Command> refused = {SetHistory{0, 0},
                                          SetHistory{0, -1},
                                          SetHistory{1, 4097},
                                          SetHistory{2, 16},
                                          SetMargin{0, 17},
                                          SetMargin{0, -9},
                                          SetMargin{-1, 0},
                                          SetAlgo{2, AmaxAlgo::max},
                                          SetRecipe{0, no_history},
                                          SetRecipe{0, no_interval},
                                          SetRecipe{1, far_margin},
                                          SetRecipe{0, nameless},
                                          SetRecipe{2, parse_recipe("bf16")},
                                          SetLearningRate{-1e-3},
                                          SetLearningRate{nan},
                                          SetLearningRate{std::numeric_limits<double>::infinity()},
                                          Watch{MlpTensor{TensorClass::x, 0}},
                                          Watch{MlpTensor{TensorClass::dy, 3}}};
    for (std::size_t i = 0; i < refused.size(); ++i) {
        CAPTURE(i);
        CHECK_THROWS_AS(trainer->set(refused[i]), Error);
    }
    trainer->step(5);
    untouched->step(5);
    CHECK(losses(trainer->snapshot().arms[0].records) == losses(untouched->snapshot().arms[0].records));
    for (const Command& accepted :
         std::vector<Command>{SetHistory{0, 1}, SetHistory{0, 4096}, SetMargin{1, -8}, SetMargin{0, 16},
                              SetLearningRate{0}, Watch{}})
        CHECK_NOTHROW(trainer->set(accepted));
    CHECK_NOTHROW(trainer->step());
}

TEST_CASE("snapshots are deltas, and nothing is told twice or lost") {
    auto trainer = make_cpu_trainer(small("bf16,delayed"));
    int expected = 0;
    for (const int n : {1, 4, 0, 7}) {
        trainer->step(n);
        const Snapshot snapshot = trainer->snapshot();
        CHECK(snapshot.step == expected + n);
        for (const ArmSnapshot& arm : snapshot.arms) {
            REQUIRE(arm.records.size() == static_cast<std::size_t>(n));
            for (int i = 0; i < n; ++i) CHECK(arm.records[static_cast<std::size_t>(i)].step == expected + i);
        }
        expected += n;
    }
}

TEST_CASE("a watched tensor has histograms of all its elements before and after the cast") {
    auto trainer = make_cpu_trainer(small("fp32,delayed"));
    trainer->step();
    CHECK_FALSE(trainer->snapshot().arms[1].watched);
    trainer->set(Watch{MlpTensor{TensorClass::dy, 2}});
    trainer->step();
    const Snapshot snapshot = trainer->snapshot();
    REQUIRE(snapshot.arms[1].watched);
    CHECK(snapshot.arms[1].watched->before.n == 40 * 3);
    CHECK(snapshot.arms[1].watched->after.n == 40 * 3);
    CHECK(snapshot.arms[1].watched->format->name == "e5m2");
    REQUIRE(snapshot.arms[0].watched);
    CHECK(snapshot.arms[0].watched->format == nullptr);
    CHECK(snapshot.arms[0].watched->before.n == 40 * 3);
}

TEST_CASE("an arm that stops before the watched tensor shows the last step that had it") {
    auto trainer = make_cpu_trainer(small("fp32,delayed:overflow=nonsaturate"));
    trainer->set(Watch{MlpTensor{TensorClass::dy, 2}});
    trainer->step(2);
    trainer->set(PoisonBatch{});
    trainer->step();
    const ArmSnapshot arm = trainer->snapshot().arms[1];
    REQUIRE(arm.stopped);
    CHECK(arm.stopped->step == 2);
    REQUIRE(arm.watched);
    CHECK(arm.watched->step == 1);
    CHECK(arm.watched->before.n == 40 * 3);
}

TEST_CASE("the spiral's decision grid holds probabilities that come to tell the arms apart") {
    TrainSpec spec = small("fp32", "spiral");
    spec.lr = 1e-2;
    auto trainer = make_cpu_trainer(spec);
    trainer->step(300);
    const auto grid = trainer->snapshot().arms[0].decision;
    REQUIRE(grid.size() == std::size_t{kDecisionGrid} * kDecisionGrid);
    float least = 1, most = 0;
    for (const float p : grid) least = std::min(least, p), most = std::max(most, p);
    CHECK(least >= 0);
    CHECK(most <= 1);
    CHECK(most - least > 0.5F);
    CHECK(make_cpu_trainer(small("fp32"))->snapshot().arms[0].decision.empty());
}

TEST_CASE("taking snapshots does not change the numbers") {
    auto disturbed = make_cpu_trainer(small("delayed", "spiral"));
    std::vector<double> seen;
    for (int s = 0; s < 10; ++s) {
        disturbed->step();
        seen.push_back(disturbed->snapshot().arms[0].records.at(0).loss);
    }
    CHECK(seen == losses(records_of(small("delayed", "spiral"), 10)));
}
