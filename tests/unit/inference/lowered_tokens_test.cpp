// A transformer whose layers were lowered by a method.
#include "core/inference/methods/lowered_tokens.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/inference/score.h"
#include "core/nn/tasks.h"
#include "core/trainer/cpu_trainer.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

const LowFormat& format(const char* id) { return find_low_format(id, "test"); }

std::shared_ptr<TokenModel> trained(std::map<std::string, int> more = {}, const char* recipe = "bf16") {
    TrainOptions options;
    options.model = "transformer";
    options.task = "text";
    options.recipes = recipe;
    options.steps = 60;
    options.sizes = {{"d", 32}, {"blocks", 2}, {"heads", 4}, {"ffn", 80}, {"context", 32}};
    for (const auto& [name, value] : more) options.sizes[name] = value;
    const Scratch scratch;
    const TrainSpec spec = make_train_spec(options);
    const auto trainer = make_cpu_trainer(spec);
    trainer->step(spec.steps);
    trainer->save(scratch.path);
    return std::make_shared<TokenModel>(spec, load_checkpoints(scratch.path, spec).arms.front(), 1);
}

// Keeps what a layer reads in FP32.
struct KeptInput final : GemmCasts<float> {
    KeptInput(const TokenModel& of, int layer) : model(of), at(layer) {}
    const Matrix<float>& operand(TensorId id, Along, const Matrix<float>& value) override {
        const OperandSpec& tensor = model.model().plan().tensor(id);
        if (tensor.tensor == TensorClass::x && model.wiring().layer_of_gemm[tensor.gemm] == at) input = value;
        return value;
    }
    void round_output(Matrix<float>&) override {}
    void round_gradient(Matrix<float>&) override {}
    SwigluForm swiglu() const override { return model.wiring().swiglu; }

    const TokenModel& model;
    int at;
    Matrix<float> input = {};
};

Mix mix_of(const TokenModel& model, const char* id, bool both) {
    return uniform_mix(model.layers().size(), format(id), both);
}

}  // namespace

TEST_CASE("to nearest, a lowered transformer is TokenModel::run()") {
    const auto model = trained();
    for (const char* id : {"nvfp4", "e4m3-row", "mxfp8"})
        for (const bool both : {false, true}) {
            const Mix mix = mix_of(*model, id, both);
            LoweredTokens lowered(model, mix, {});
            CHECK(lowered.run().values == model->run(mix).y.values);
            CHECK(lowered.layers().size() == 9);
        }
}

TEST_CASE("in FP32 every method leaves the logits within 1e-4, tied embedding and shared heads too") {
    for (const auto& more :
         std::vector<std::map<std::string, int>>{{}, {{"tie", 1}}, {{"kv-heads", 2}}, {{"d", 48}}}) {
        const auto model = trained(more);
        const Matrix<float> expected = model->forward();
        for (const MethodInfo& method : methods()) {
            if (method.id == Method::four_or_six) continue;
            CAPTURE(method.name);
            LoweredTokens lowered(model, mix_of(*model, "fp32", true), {.method = method.id});
            const Matrix<float> logits = lowered.run();
            double worst = 0;
            for (std::size_t i = 0; i < logits.values.size(); ++i)
                worst = std::max(worst, std::fabs(static_cast<double>(logits.values[i]) -
                                                  static_cast<double>(expected.values[i])));
            CHECK(worst <= 1e-4);
        }
    }
}

// The scales of Smooth-SwiGLU are of the tokens of a pass, and weights are lowered before it.
TEST_CASE("a model of Smooth-SwiGLU keeps its function, and comes near to what a cast in the pass gives") {
    const auto model = trained({}, "mxfp8:act=smooth");
    const Reference reference = reference_of(model->forward(), true, model->data().targets);
    const auto divergence = [&](const char* id, Method method) {
        LoweredTokens lowered(model, mix_of(*model, id, true), {.method = method});
        return divergence_of(reference, lowered.run());
    };
    CHECK(divergence("fp32", Method::nearest) < 1e-9);
    CHECK(divergence("fp32", Method::rotate) < 1e-9);
    const double in_the_pass = divergence_of(reference, model->run(mix_of(*model, "mxfp8", true)).y);
    CHECK(divergence("mxfp8", Method::nearest) < 3 * in_the_pass);
    CHECK(divergence("nvfp4", Method::gptq) < divergence("nvfp4", Method::nearest));
}

TEST_CASE("GPTQ comes closer to the transformer in FP32 than casting to nearest") {
    const auto model = trained();
    const Reference reference = reference_of(model->forward(), true, model->data().targets);
    for (const char* id : {"nvfp4", "mxfp4"}) {
        const Mix mix = mix_of(*model, id, false);
        const auto divergence = [&](Method method) {
            LoweredTokens lowered(model, mix, {.method = method});
            return divergence_of(reference, lowered.run());
        };
        CHECK(divergence(Method::gptq) < 0.7 * divergence(Method::nearest));
        CHECK(divergence(Method::rotate_gptq) < 0.7 * divergence(Method::nearest));
    }
}

TEST_CASE("a method sees so many tokens of the training sequences as it is given, to the token") {
    const auto model = trained();
    TrainSpec spec = model->spec();
    spec.batch = TokenModel::kTrainSequences;
    Batch batch;
    make_task(spec)->draw(0, batch);
    KeptInput kept(*model, 0);
    model->writable().forward(batch, kept);
    const Matrix<float>& all = kept.input;
    REQUIRE(all.rows == 32 * 32);
    for (const std::size_t rows : {1U, 33U, 64U, 1000U, 1024U, 5000U}) {
        CAPTURE(rows);
        const MethodOptions how{.method = Method::gptq, .rows = rows};
        Matrix<float> seen(std::min(rows, all.rows), all.cols);
        std::copy_n(all.values.begin(), seen.values.size(), seen.values.begin());
        const LoweredLayer first = lower_layer(format("nvfp4"), how, model->weights(0), seen, {"1.qkv"});
        LoweredTokens lowered(model, mix_of(*model, "nvfp4", false), how);
        CHECK(lowered.layers()[0].w.values == first.w.values);
        CHECK(lowered.layers()[0].rel_out == first.rel_out);
    }
}

TEST_CASE("a transformer's errors name the layer") {
    const auto model = trained();
    try {
        LoweredTokens lowered(model, mix_of(*model, "nvfp4", false),
                              {.method = Method::gptq, .damp = 1e-300, .rows = 1});
        FAIL("did not throw");
    } catch (const Error& e) {
        CHECK(std::string(e.what()).find("layer 1.qkv") != std::string::npos);
    }
}

TEST_CASE("an expert that no calibration token chooses cannot be lowered, and is named") {
    TrainOptions options;
    options.model = "moe";
    options.task = "zipf:50";
    options.recipes = "bf16";
    options.steps = 1;
    options.batch = 1;
    options.sizes = {{"d", 16}, {"heads", 2}, {"ffn", 16}, {"context", 8}, {"experts", 64}, {"active", 1}};
    const Scratch scratch;
    const TrainSpec spec = make_train_spec(options);
    const auto trainer = make_cpu_trainer(spec);
    trainer->save(scratch.path);
    const auto model =
        std::make_shared<TokenModel>(spec, load_checkpoints(scratch.path, spec).arms.front(), 1);
    try {
        LoweredTokens(model, mix_of(*model, "nvfp4", false), {.rows = 16});
        FAIL("no error");
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::usage);
        CHECK(error.where() == "--rows");
        CHECK(error.why().find("gets no token of the calibration rows") != std::string::npos);
    }
}
