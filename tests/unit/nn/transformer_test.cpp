// The transformer: gradients against central differences in float64, and what its shape promises.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/nn/models/transformer/model.h"
#include "core/nn/ops/token_loss.h"
#include "core/nn/recipe_casts.h"
#include "tests/unit/nn/gradient_error.h"

using namespace fp8lab;

namespace {

// A small one, with a vocabulary that no task has.
TrainSpec small_spec(int kv_heads = 2, int tie = 0) {
    TrainSpec spec;
    spec.model = "transformer";
    spec.sizes = {{"d", 8},    {"blocks", 2},  {"heads", 2}, {"kv-heads", kv_heads},
                  {"ffn", 12}, {"context", 8}, {"tie", tie}};
    spec.vocabulary = 11;
    return spec;
}

TokenBatch some_tokens(std::size_t sequences = 3, std::size_t context = 8, int vocabulary = 11) {
    TokenBatch batch{.sequences = sequences, .context = context};
    Rng rng(5);
    for (std::size_t i = 0; i < batch.size(); ++i) {
        batch.tokens.push_back(static_cast<int>(rng.below(static_cast<std::uint32_t>(vocabulary))));
        batch.targets.push_back(static_cast<int>(rng.below(static_cast<std::uint32_t>(vocabulary))));
        batch.scored.push_back(i % 5 != 0);
    }
    return batch;
}

class FormOf final : public GemmCasts<double> {
  public:
    explicit FormOf(SwigluForm form) : form_(form) {}
    const Matrix<double>& operand(TensorId, Along, const Matrix<double>& value) override { return value; }
    void round_output(Matrix<double>&) override {}
    void round_gradient(Matrix<double>&) override {}
    SwigluForm swiglu() const override { return form_; }

  private:
    SwigluForm form_;
};

// So that gradients of every parameter are of one order: a head as large as the other weights, gains that differ.
std::unique_ptr<Model<double>> trained_looking(const TrainSpec& spec) {
    auto model = find_model(spec.model).make_reference(spec);
    model->initialise(7);
    Rng rng(3);
    for (const Parameter<double>& p : model->parameters())
        for (double& v : p.value) v += 0.3 * static_cast<double>(rng.normal());
    return model;
}

double loss_of(Model<double>& model, const TokenBatch& batch, GemmCasts<double>& casts) {
    return token_loss(model.forward(batch, casts), batch).loss;
}

}  // namespace

TEST_CASE("gradients of the whole transformer against central differences: GQA, tying, forms of SwiGLU") {
    struct Case {
        int kv_heads, tie;
        SwigluForm form;
    };
    for (const Case c :
         {Case{2, 0, SwigluForm::plain}, Case{1, 0, SwigluForm::plain}, Case{2, 1, SwigluForm::plain},
          Case{1, 1, SwigluForm::smooth}, Case{2, 0, SwigluForm::clamp}}) {
        CAPTURE(c.kv_heads);
        CAPTURE(c.tie);
        CAPTURE(static_cast<int>(c.form));
        auto model = trained_looking(small_spec(c.kv_heads, c.tie));
        const TokenBatch batch = some_tokens();
        FormOf casts(c.form);
        Matrix<double> dy;
        token_loss(model->forward(batch, casts), batch, dy);
        model->backward(dy, casts);
        const auto& names = model->plan().parameters;
        REQUIRE(names.size() == model->parameters().size());
        for (std::size_t i = 0; i < names.size(); ++i) {
            CAPTURE(names[i].name);
            CHECK(names[i].elements() == model->parameters()[i].value.size());
            CHECK(test::gradient_error(model->parameters()[i],
                                       [&] { return loss_of(*model, batch, casts); }) < 1e-6);
        }
    }
}

TEST_CASE("the float model computes what the double one does") {
    const TrainSpec spec = small_spec(1);
    auto reference = trained_looking(spec);
    auto model = make_model(spec);
    for (std::size_t i = 0; i < model->parameters().size(); ++i)
        std::ranges::copy(reference->parameters()[i].value, model->parameters()[i].value.begin());
    const TokenBatch batch = some_tokens();
    NoCasts<double> exact;
    NoCasts<float> casts;
    Matrix<double> dy;
    Matrix<float> dyf;
    const double loss = token_loss(reference->forward(batch, exact), batch, dy).loss;
    CHECK(token_loss(model->forward(batch, casts), batch, dyf).loss == doctest::Approx(loss).epsilon(1e-5));
    reference->backward(dy, exact);
    model->backward(dyf, casts);
    for (std::size_t i = 0; i < model->parameters().size(); ++i) {
        CAPTURE(model->plan().parameters[i].name);
        double difference = 0, norm = 0;
        for (std::size_t k = 0; k < model->parameters()[i].value.size(); ++k) {
            const double expected = reference->parameters()[i].gradient[k],
                         d = expected - static_cast<double>(model->parameters()[i].gradient[k]);
            difference += d * d, norm += expected * expected;
        }
        CHECK(std::sqrt(difference / norm) < 2e-5);
    }
}

TEST_CASE("a later token changes no logits before it") {
    auto model = trained_looking(small_spec());
    NoCasts<double> casts;
    TokenBatch batch = some_tokens();
    const Matrix<double> before = model->forward(batch, casts);
    constexpr std::size_t kChanged = 5;  // of the second sequence
    batch.tokens[8 + kChanged] = (batch.tokens[8 + kChanged] + 1) % 11;
    const Matrix<double>& after = model->forward(batch, casts);
    for (std::size_t r = 0; r < before.rows; ++r) {
        const bool may_differ = r >= 8 + kChanged && r < 16;
        CHECK((std::ranges::equal(before.row(r), after.row(r))) == !may_differ);
    }
}

TEST_CASE("the positions matter: a sequence of other order has another last row") {
    auto model = trained_looking(small_spec());
    NoCasts<double> casts;
    TokenBatch batch = some_tokens(1);
    const Matrix<double> before = model->forward(batch, casts);
    std::swap(batch.tokens[0], batch.tokens[1]);
    REQUIRE(batch.tokens[0] != batch.tokens[1]);
    CHECK_FALSE(std::ranges::equal(before.row(7), model->forward(batch, casts).row(7)));
}

TEST_CASE("Smooth-SwiGLU is exact: without casts the logits are the same bit for bit") {
    auto model = trained_looking(small_spec());
    const TokenBatch batch = some_tokens();
    FormOf plain(SwigluForm::plain), smooth(SwigluForm::smooth), clamp(SwigluForm::clamp);
    const Matrix<double> expected = model->forward(batch, plain);
    CHECK(model->forward(batch, smooth).values == expected.values);
    CHECK(model->forward(batch, clamp).values == expected.values);  // nothing here is above 10
}

TEST_CASE("an untrained head knows nothing: the first loss is ln V to 1 % at d = 64, tied or not") {
    for (const int tie : {0, 1})
        for (const std::uint64_t seed : {1U, 2U, 3U}) {
            TrainOptions options;
            options.model = "transformer";
            options.sizes = {{"tie", tie}};
            options.seed = seed;
            const TrainSpec spec = make_train_spec(options);
            CHECK(spec.vocabulary == 55);
            auto model = make_model(spec);
            model->initialise(seed);
            Batch batch;
            make_task(spec)->draw(0, batch);
            NoCasts<float> casts;
            const double loss = token_loss(model->forward(batch, casts), std::get<TokenBatch>(batch)).loss;
            CHECK(loss == doctest::Approx(std::log(55.0)).epsilon(0.0101));
        }
}

TEST_CASE(
    "an aligned channel: down.x grows to millions, the function stays what it was, and the weights are "
    "held") {
    TrainOptions options;
    options.model = "transformer";
    const TrainSpec spec = make_train_spec(options);
    auto model = make_model(spec);
    model->initialise(1);
    const ModelPlan& plan = model->plan();
    const auto parameter = [&](const char* name) {
        const auto hit = std::ranges::find(plan.parameters, name, &ParameterSpec::name);
        return model->parameters()[static_cast<std::size_t>(hit - plan.parameters.begin())];
    };
    auto task = make_task(spec);
    CHECK(task->symbols()[static_cast<std::size_t>(task->rarest())] == '+');  // 3 of 25,394 characters
    TokenBatch batch{.sequences = 1, .context = 64};
    batch.tokens.assign(64, task->rarest());
    NoCasts<float> casts;
    const Matrix<float> before = model->forward(batch, casts);
    model->align_channel(task->rarest());
    const Matrix<float> after = model->forward(batch, casts);
    float amax = 0;
    for (const float v : model->values(*plan.find("1.down.x"))) amax = std::max(amax, std::abs(v));
    CHECK(amax > 1e6F);
    for (std::size_t i = 0; i < before.values.size(); ++i)  // channel 1 was a small part of the sum
        CHECK(std::abs(after.values[i] - before.values[i]) < 0.05F);
    const Parameter<float> gates = parameter("1.gate_up.w"), down = parameter("1.down.w");
    const std::vector<float> kept(gates.value.begin(), gates.value.begin() + 64);
    Matrix<float> dy;
    TokenBatch scored = batch;
    scored.targets.assign(64, 3);
    token_loss(after, scored, dy);
    model->backward(dy, casts);
    for (std::size_t i = 0; i < 64; ++i) {
        CHECK(gates.gradient[i] == 0);
        CHECK(gates.gradient[192 * 64 + i] == 0);
        CHECK(down.gradient[i * 192] == 0);
        gates.value[i] += 1;  // what momentum would do
    }
    model->after_update();
    CHECK(std::equal(kept.begin(), kept.end(), gates.value.begin()));
    CHECK(std::equal(kept.begin(), kept.end(), gates.value.begin() + 192 * 64));
    CHECK_THROWS_AS(make_model(make_train_spec({}))->align_channel(0), Error);
}
