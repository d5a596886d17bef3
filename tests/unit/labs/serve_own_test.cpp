// Networks of one's own in L17: what is said of them is of their file, their rows and their loss.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/files/files.h"
#include "core/inference/methods/lowered_mlp.h"
#include "core/tensors/npy.h"
#include "core/trainer/cpu_trainer.h"
#include "labs/serve/model.h"
#include "tests/scratch.h"

using namespace fp8lab;
using namespace fp8lab::serve;

namespace {

void set(ServeLab& lab, std::initializer_list<std::string> assignments) {
    for (const std::string& assignment : assignments) set_field(lab.fields(), assignment);
    lab.update();
}

double number(const ServeLab& lab, std::string_view name) {
    const auto metrics = lab.metrics();
    const auto it = std::ranges::find(metrics, name, &Metric::name);
    REQUIRE_MESSAGE(it != metrics.end(), name);
    return it->value;
}

std::string why_not(std::initializer_list<std::string> assignments) {
    try {
        ServeLab lab;
        set(lab, assignments);
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::usage);
        return error.what();
    }
    return "";
}

// A checkpoint of a network with 16 inputs, trained on so many rows of two files: the side of a plane, one-hot, or the
// distance from it. The same path for every call.
std::string trained(const Scratch& scratch, std::size_t rows, bool classifies, int steps = 20) {
    Matrix<float> x(rows, 16), y(rows, classifies ? 2 : 1);
    Rng(5).fill_normal(x.values);
    for (std::size_t r = 0; r < rows; ++r) {
        const float side = x.row(r)[0] + x.row(r)[3] - x.row(r)[7];
        if (classifies)
            y.row(r)[side > 0 ? 1 : 0] = 1;
        else
            y.row(r)[0] = side;
    }
    for (const auto& [name, m] : {std::pair{"x.npy", &x}, {"y.npy", &y}})
        write_file(scratch.path / name, to_npy(m->values, std::vector{m->rows, m->cols}));
    TrainOptions options;
    options.task = "npy:" + scratch / "x.npy" + "," + scratch / "y.npy";
    options.layers = {16, 32, 32, classifies ? 2 : 1};
    options.activation = "relu", options.recipes = "fp32", options.steps = steps, options.batch = 16;
    const TrainSpec spec = make_train_spec(options);
    const auto trainer = make_cpu_trainer(spec);
    trainer->step(spec.steps);
    trainer->save(scratch.path / "own");
    return scratch / "own/1-fp32.safetensors";
}

// A small transformer, trained for a few steps.
std::string trained_tokens(const Scratch& scratch, int context, int steps = 5) {
    TrainOptions options;
    options.model = "transformer", options.task = "text", options.recipes = "fp32", options.steps = steps;
    options.sizes = {{"d", 32}, {"blocks", 1}, {"heads", 2}, {"ffn", 64}, {"context", context}};
    const TrainSpec spec = make_train_spec(options);
    const auto trainer = make_cpu_trainer(spec);
    trainer->step(spec.steps);
    trainer->save(scratch.path / "tokens");
    return scratch / "tokens/1-fp32.safetensors";
}

}  // namespace

TEST_CASE("L17: with a short context the lab says the lengths that it used") {
    const Scratch scratch;
    const std::string path = "path=" + trained_tokens(scratch, 22);
    ServeLab lab;
    set(lab, {"model=own", path, "experiment=rollout", "answers=16", "others=off"});
    const RolloutLine& line = *lab->rollouts->chosen();
    CHECK(line.longest() == 14);
    CHECK(lab->rollouts->lengths() == std::array{2, 7, 14});
    CHECK(ess_title(*lab->rollouts, 56, "off").starts_with("After 14 tokens"));
    CHECK(tokens_words(56, line.longest()) == "14 tokens, the most that the context leaves");
    CHECK(tokens_words(14, line.longest()) == "14 tokens");
    CHECK(tokens_words(1, line.longest()) == "1 token");
    CHECK(lab.figures()[0].x.range->hi == 14);
    const double all = number(lab, "ess_pct");
    set(lab, {"tokens=14"});
    CHECK(number(lab, "ess_pct") == all);

    set(lab, {"experiment=draft", "length=16"});
    CHECK(lab->drafts->longest() == 5);
    CHECK(lab.figures()[0].x.range->hi == 5);
    CHECK(lab->round->proposed.size() == 5);
    const double most = number(lab, "speedup");
    set(lab, {"length=5"});
    CHECK(number(lab, "speedup") == most);
    CHECK(Rollouts{}.lengths() == std::array{8, 28, 56});
}

TEST_CASE("L17: a network with fewer rows than asked for says how many a method saw") {
    const Scratch scratch;
    const std::string path = "path=" + trained(scratch, 200, true);
    ServeLab lab;
    set(lab, {"network=own", path, "method=gptq"});
    CHECK(lab->chosen->seen == 200);
    const double all = number(lab, "divergence");
    set(lab, {"rows=200"});
    CHECK(number(lab, "divergence") == all);
    set(lab, {"rows=50"});
    CHECK(lab->chosen->seen == 50);
    CHECK(number(lab, "divergence") != all);
    set(lab, {"rows=1000"});
    CHECK(lab->chosen->seen == 200);
    // The field ends at what the digits have, and at its end is their number.
    set(lab, {"network=digits-s1", "rows=1348"});
    CHECK(lab->chosen->seen == 1348);
    CHECK_THROWS_AS(set_field(lab.fields(), "rows=1349"), Error);
}

TEST_CASE("L17: a file that is overwritten under its name is read again") {
    const Scratch scratch;
    const std::string path = "path=" + trained(scratch, 64, true);
    ServeLab lab;
    set(lab, {"network=own", path});
    const double before = number(lab, "divergence");
    lab.update();
    CHECK(number(lab, "divergence") == before);
    trained(scratch, 64, true, 60);
    lab.update();
    const double after = number(lab, "divergence");
    CHECK(after != before);
    ServeLab fresh;
    set(fresh, {"network=own", path});
    CHECK(after == number(fresh, "divergence"));

    // As it is for a model of tokens; a file that is gone says so.
    const std::string tokens = trained_tokens(scratch, 16);
    set(lab, {"experiment=kv", "model=own", "path=" + tokens});
    const double kv = number(lab, "kv_divergence");
    trained_tokens(scratch, 16, 20);
    lab.update();
    CHECK(number(lab, "kv_divergence") != kv);
    std::filesystem::remove(tokens);
    CHECK_THROWS_WITH_AS(lab.update(), doctest::Contains("No such file"), Error);
}

TEST_CASE("L17: training back takes no network that it could score on its training rows alone") {
    const Scratch scratch;
    const std::string path = "path=" + trained(scratch, 64, true);
    const std::string reason = why_not({"experiment=qat", "network=own", path});
    CHECK(reason.find("1-fp32.safetensors: was trained on files") != std::string::npos);
    CHECK(reason.find('\n') == std::string::npos);
    CHECK(why_not({"experiment=qat", "network=transformer"}).find("transformer: is a model of tokens") !=
          std::string::npos);
    CHECK(why_not({"experiment=methods", "network=own", path}).empty());
}

TEST_CASE("L17: a network that does not classify has a relative squared error, no nats and no answers") {
    const Scratch scratch;
    ServeLab lab;
    set(lab, {"network=own", "path=" + trained(scratch, 64, false), "lower=both", "amax=2"});
    CHECK_FALSE(lab->chosen->classifies);
    CHECK(divergence_name(lab->chosen->classifies) == "relative squared error");
    CHECK(std::isnan(number(lab, "changed")));
    CHECK(std::isnan(number(lab, "accuracy_pct")));
    // sum (y - y_fp32)^2 / sum y_fp32^2, without the lab.
    const auto served = make_served(lab->params.network_spec());
    const Mix mix = uniform_mix(served->mlp->layers.size(), find_low_format("nvfp4", "test"), true);
    const LoweredMlp lowered = lower_mlp(*served->mlp, served->data.train_x, mix, {.amax_factor = 2});
    const Matrix<float> exact = forward(*served->mlp, served->data.test.x),
                        y = run_lowered(*served->mlp, lowered, served->data.test.x);
    double error = 0, size = 0;
    for (std::size_t i = 0; i < y.values.size(); ++i) {
        const auto to = static_cast<double>(exact.values[i]);
        error += std::pow(static_cast<double>(y.values[i]) - to, 2), size += to * to;
    }
    CHECK(number(lab, "divergence") == doctest::Approx(error / size).epsilon(1e-12));
    for (const Figure& figure : lab.figures())
        CHECK_MESSAGE(figure.y.label.find("nats") == std::string::npos, figure.id);
    set(lab, {"network=digits-s1", "amax=1"});
    CHECK(divergence_name(lab->chosen->classifies) == "divergence, nats");
    CHECK(number(lab, "changed") > 0);
}
