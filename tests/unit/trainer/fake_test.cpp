// Quantization-aware training: fake=1, --init-from and --teacher.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/nn/recipe_casts.h"
#include "core/trainer/checkpoint.h"
#include "core/trainer/cpu_trainer.h"
#include "core/trainer/teacher_network.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

TrainOptions mlp(const std::string& recipe, int steps = 5) {
    TrainOptions options;
    options.task = "digits";
    options.recipes = recipe;
    options.batch = 32;
    options.steps = steps;
    options.layers = std::vector<int>{64, 24, 10};
    options.loss = "cross-entropy";
    options.activation = "relu";
    return options;
}

TrainOptions text(const std::string& recipe, const std::string& task = "copying") {
    TrainOptions options;
    options.model = "transformer";
    options.task = task;
    options.recipes = recipe;
    options.steps = 4;
    options.batch = 2;
    options.sizes = {{"d", 16}, {"blocks", 1}, {"heads", 2}, {"ffn", 32}, {"context", 32}};
    return options;
}

std::string save(const Scratch& scratch, const TrainOptions& options) {
    const auto trainer = make_cpu_trainer(make_train_spec(options));
    trainer->step(*options.steps);
    trainer->save(scratch.path);
    return std::filesystem::directory_iterator(scratch.path)->path().string();
}

Matrix<float> normal(std::size_t rows, std::size_t cols, std::uint64_t stream) {
    Matrix<float> m(rows, cols);
    Rng(5, stream).fill_normal(m.values);
    return m;
}

std::vector<ParameterCheckpoint> parameters(const std::string& file, const TrainSpec& spec) {
    return load_checkpoints(file, spec).arms.front().parameters;
}

}  // namespace

TEST_CASE("with fake=1 both products read the same cast, and dy is not cast") {
    for (const char* name : {"nvfp4", "mxfp4", "rowwise", "block128", "current", "current:fwd=e2m1"}) {
        CAPTURE(name);
        const TrainSpec spec = make_train_spec(mlp(std::string(name) + ":fake=1"));
        const ModelPlan plan = model_plan(spec);
        RecipeCasts casts(spec.arms.front(), plan, 1);
        casts.begin_step(0, std::nullopt);
        const Matrix<float> x = normal(48, 64, 1), w = normal(24, 64, 2), dy = normal(48, 24, 3);
        const auto of = [&](const char* tensor, Along along, const Matrix<float>& value) {
            return casts.operand(*plan.find(tensor), along, value).values;
        };
        const auto cast_x = of("x1", Along::cols, x), cast_w = of("w1", Along::cols, w);
        CHECK(cast_x != x.values);
        CHECK(cast_w != w.values);
        CHECK(of("x1", Along::rows, x) == cast_x);
        CHECK(of("w1", Along::rows, w) == cast_w);
        CHECK(of("dy1", Along::cols, dy) == dy.values);
        CHECK(of("dy1", Along::rows, dy) == dy.values);
        std::vector<float> expected(x.values.size());
        (void)quantize(cast_plan(parse_recipe(name), TensorClass::x), x.values, expected,
                       {.rows = 48, .cols = 64});
        CHECK(cast_x == expected);
    }
}

TEST_CASE("fake=1 is for casts whose scale is of the tensor at hand, and refuses options without effect") {
    for (const char* wrong : {"delayed:fake=1", "bf16:fake=1", "nvfp4-te:fake=1", "nvfp4:fake=1:rht=1",
                              "nvfp4:w2d=1:fake=1", "current:fake=1:bwd=e4m3", "mxfp8:fake=1:colsrc=rowwise",
                              "nvfp4:fake=1:dgrad_in=bf16", "mxfp8:round_bwd=stochastic:fake=1"})
        CHECK_THROWS_AS((void)parse_recipe(wrong), Error);
    CHECK(recipe_text(parse_recipe("nvfp4:fake=1:out=fp32")) == "nvfp4:out=fp32:fake=1");
    CHECK(parse_recipe("mxfp4:wide=first:fake=1").fake);
}

TEST_CASE("a run starts from the weights of a checkpoint, with moments and steps at 0") {
    const Scratch first, second;
    TrainOptions options = mlp("fp32", 20);
    const std::string file = save(first, options);
    options.init_from = file;
    const TrainSpec spec = make_train_spec(options);
    const auto trainer = make_cpu_trainer(spec);
    CHECK(trainer->steps_done() == 0);
    trainer->save(second.path);
    const auto before = parameters(file, spec), after = parameters(second.path, spec);
    for (std::size_t p = 0; p < before.size(); ++p) {
        CHECK(before[p].values == after[p].values);
        CHECK(std::ranges::all_of(after[p].moments.m, [](float m) { return m == 0; }));
    }
    CHECK(command_line(spec).find("--init-from " + file) != std::string::npos);
}

TEST_CASE("a network that is its own teacher stays as it is, to the bit") {
    for (const TrainOptions& how : {mlp("fp32", 20), text("fp32"), text("fp32:act=clamp")}) {
        const Scratch first, second;
        TrainOptions options = how;
        const std::string file = save(first, options);
        options.init_from = options.teacher = file;
        const TrainSpec spec = make_train_spec(options);
        const auto trainer = make_cpu_trainer(spec);
        trainer->step(3);
        const auto records = trainer->snapshot();
        trainer->save(second.path);
        const auto before = parameters(file, spec), after = parameters(second.path, spec);
        for (std::size_t p = 0; p < before.size(); ++p) CHECK(before[p].values == after[p].values);
        CHECK(records.arms.front().records.front().loss > 0);  // the entropy of its own probabilities
    }
}

TEST_CASE(
    "the gradient of the teacher's loss is that of its values, also of tokens that are not all scored") {
    for (const bool tokens : {false, true}) {
        const Scratch scratch;
        TrainOptions options = tokens ? text("fp32") : mlp("fp32", 20);
        options.teacher = save(scratch, options);
        const TrainSpec spec = make_train_spec(options);
        TeacherNetwork teacher(spec);
        Batch batch;
        make_task(spec)->draw(3, batch);
        const auto model = make_model(spec);
        model->initialise(9);
        NoCasts<float> none;
        Matrix<float> y = model->forward(batch, none), dy, unused;
        const LossValue value = teacher.loss_and_gradient(y, batch, dy);
        CHECK(value.accuracy == loss_and_gradient(LossKind::cross_entropy, y, batch, unused).accuracy);
        int compared = 0;
        for (std::size_t i = 0; i < y.values.size(); i += y.values.size() / 40) {
            constexpr float kStep = 0.02F;
            const float kept = y.values[i];
            y.values[i] = kept + kStep;
            const double above = teacher.loss_and_gradient(y, batch, unused).loss;
            y.values[i] = kept - kStep;
            const double below = teacher.loss_and_gradient(y, batch, unused).loss;
            y.values[i] = kept;
            CHECK(static_cast<double>(dy.values[i]) ==
                  doctest::Approx((above - below) / (2 * static_cast<double>(kStep)))
                      .epsilon(0.01)
                      .scale(1e-3));
            ++compared;
        }
        CHECK(compared >= 40);
    }
}

TEST_CASE("a teacher must be there, of the model's shapes, and the loss cross-entropy") {
    const Scratch scratch;
    TrainOptions options = mlp("fp32");
    const std::string file = save(scratch, options);
    options.teacher = file;
    options.layers = std::vector<int>{64, 25, 10};
    CHECK_THROWS_AS((void)make_cpu_trainer(make_train_spec(options)), Error);
    options = mlp("fp32");
    options.teacher = scratch / "none.safetensors";
    CHECK_THROWS_AS((void)make_cpu_trainer(make_train_spec(options)), Error);
    options.teacher = file;
    options.loss = "mse";
    CHECK_THROWS_AS((void)make_train_spec(options), Error);
    options = mlp("fp32");
    options.teacher = scratch.path;  // a folder
    CHECK_THROWS_AS((void)make_cpu_trainer(make_train_spec(options)), Error);
    options = mlp("fp32");
    options.init_from = scratch / "none.safetensors";
    CHECK_THROWS_AS((void)make_cpu_trainer(make_train_spec(options)), Error);
}
