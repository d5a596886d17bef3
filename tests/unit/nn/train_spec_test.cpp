#include "core/nn/train_spec.h"

#include <doctest/doctest.h>

#include <limits>

#include "core/base/error.h"

using namespace fp8lab;

namespace {

TrainOptions task(std::string name) {
    TrainOptions options;
    options.task = std::move(name);
    return options;
}

struct Failure {
    ErrorKind kind;
    std::string text;
};

Failure failure_of(const TrainOptions& options) {
    try {
        make_train_spec(options);
    } catch (const Error& error) {
        return {error.kind(), error.what()};
    }
    return {};
}

ErrorKind kind_of_failure(const TrainOptions& options) { return failure_of(options).kind; }

}  // namespace

TEST_CASE("every task brings the defaults of the command line's documentation") {
    const TrainSpec teacher = make_train_spec({});
    CHECK(teacher.layers == std::vector{32, 64, 64, 1});
    CHECK(teacher.activation == Activation::tanh);
    CHECK(teacher.loss == LossKind::mse);
    CHECK(teacher.batch == 256);
    CHECK(teacher.lr == 2e-3);
    CHECK(teacher.steps == 2000);
    CHECK(teacher.arms.size() == 2);

    const TrainSpec noise = make_train_spec(task("noise"));
    CHECK(noise.layers == std::vector{768, 3072, 768});
    CHECK(noise.activation == Activation::gelu);
    CHECK(noise.batch == 32);
    CHECK(noise.lr == 1e-4);

    const TrainSpec spiral = make_train_spec(task("spiral"));
    CHECK(spiral.layers == std::vector{2, 64, 64, 2});
    CHECK(spiral.loss == LossKind::cross_entropy);
}

TEST_CASE("what does not fit is a usage error") {
    CHECK(kind_of_failure(task("teachr")) == ErrorKind::usage);
    CHECK(kind_of_failure(task("npy:only_x.npy")) == ErrorKind::usage);
    CHECK(kind_of_failure(task("npy:,y.npy")) == ErrorKind::usage);
    TrainOptions options = task("spiral");
    options.layers = {3, 8, 2};
    CHECK(kind_of_failure(options) == ErrorKind::usage);
    options = {};
    options.layers = {32};
    CHECK(kind_of_failure(options) == ErrorKind::usage);
    options = {};
    options.layers = {32, 0, 1};
    CHECK(kind_of_failure(options) == ErrorKind::usage);
    options = {};
    options.loss = "cross-entropy";  // the teacher's targets are no classes
    CHECK(kind_of_failure(options) == ErrorKind::usage);
    options = {};
    options.lr = std::numeric_limits<double>::quiet_NaN();
    CHECK(kind_of_failure(options) == ErrorKind::usage);
    options = {};
    options.recipes = "bf16,delayde";
    CHECK(kind_of_failure(options) == ErrorKind::usage);
}

TEST_CASE("a file that is not there is an input error, also behind a wrong loss name") {
    CHECK(kind_of_failure(task("npy:/nowhere/x.npy,/nowhere/y.npy")) == ErrorKind::input);
    TrainOptions options = task("npy:/nowhere/x.npy,/nowhere/y.npy");
    options.loss = "mean";
    CHECK(kind_of_failure(options) == ErrorKind::usage);
}

TEST_CASE("an unknown name lists the valid ones") {
    TrainOptions options;
    options.activation = "swish";
    CHECK(failure_of(options).text == "--activation: unknown activation 'swish'; valid: tanh gelu relu");
}

TEST_CASE("the cosine schedule warms up over 100 steps and ends at 2 %") {
    TrainOptions options;
    options.schedule = "cosine";
    options.lr = 1;
    const TrainSpec spec = make_train_spec(options);
    // Worked by hand: lr * min(1, (t + 1) / 100) * (0.98 (1 + cos(pi t / N)) / 2 + 0.02), N = 2000.
    CHECK(learning_rate(spec, 0) == doctest::Approx(0.01));
    CHECK(learning_rate(spec, 99) == doctest::Approx(0.98 * (1 + 0.987930) / 2 + 0.02).epsilon(1e-5));
    CHECK(learning_rate(spec, 1000) == doctest::Approx(0.51));
    CHECK(learning_rate(spec, 1999) == doctest::Approx(0.02).epsilon(1e-3));
    CHECK(learning_rate(make_train_spec({}), 1234) == 2e-3);
}

TEST_CASE("the command line spells every value out") {
    TrainOptions options;
    options.recipes = "bf16,delayed";
    options.recipe_defaults.margin = 1;
    options.layers = {32, 16, 1};
    const std::string line = command_line(make_train_spec(options));
    CHECK(
        line ==
        "--recipe bf16,delayed:margin=1 --task teacher --layers 32,16,1 --activation tanh --batch 256 "
        "--steps 2000 --lr 0.002 --schedule constant --optimizer adamw --weight-decay 0 --loss mse --seed 1");
}

TEST_CASE("task zipf has any vocabulary, and the command line says which") {
    TrainOptions options = task("zipf");
    options.model = "transformer";
    const TrainSpec usual = make_train_spec(options);
    CHECK(usual.task == TaskKind::zipf);
    CHECK(usual.vocabulary == 4096);
    CHECK(usual.batch == 8);
    CHECK(usual.beta2 == 0.95);
    CHECK(command_line(usual).find("--task zipf:4096 --model transformer") != std::string::npos);
    for (const int v : {2, 50257, 131072}) {
        options.task = "zipf:" + std::to_string(v);
        const TrainSpec spec = make_train_spec(options);
        CHECK(spec.vocabulary == v);
        CHECK(command_line(spec).find("--task " + options.task + " ") != std::string::npos);
    }
    for (const char* wrong :
         {"1", "0", "-2", "131073", "99999999999999", "", "many", "257 ", "2.5", "257,2"}) {
        options.task = std::string("zipf:") + wrong;
        const Failure failure = failure_of(options);
        CHECK(failure.kind == ErrorKind::usage);
        CHECK(failure.text ==
              std::string("--task: zipf:V takes a vocabulary of 2 to 131072, got '") + wrong + "'");
    }
    CHECK(failure_of(task("zipf:300")).text == "--task: zipf is no task of --model mlp");
}
