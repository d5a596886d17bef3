// A mixture of experts: gradients with the choices fixed against central differences in float64, what a router chooses,
// and experts with many rows, one, or none.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/nn/models/moe/model.h"
#include "core/nn/ops/token_loss.h"
#include "core/nn/recipe_casts.h"
#include "tests/unit/nn/gradient_error.h"

using namespace fp8lab;

namespace {

constexpr int kVocabulary = 11, kContext = 8;

MoeShape small(std::size_t experts = 4, std::size_t active = 2) {
    MoeShape s{TransformerShape{.d = 8,
                                .blocks = 2,
                                .heads = 2,
                                .kv_heads = 1,
                                .ffn = 6,
                                .context = kContext,
                                .vocabulary = kVocabulary}};
    s.experts = experts, s.active = active;
    return s;
}

TokenBatch some_tokens(std::size_t sequences = 3, std::size_t context = kContext) {
    TokenBatch batch{.sequences = sequences, .context = context};
    Rng rng(5);
    for (std::size_t i = 0; i < batch.size(); ++i) {
        batch.tokens.push_back(static_cast<int>(rng.below(kVocabulary)));
        batch.targets.push_back(static_cast<int>(rng.below(kVocabulary)));
        batch.scored.push_back(i % 5 != 0);
    }
    return batch;
}

// Gradients of every parameter are of one order then, and the biases are not 0.
template <class T>
void disturb(Moe<T>& model) {
    model.initialise(7);
    Rng rng(3);
    for (const Parameter<T>& p : model.parameters())
        for (T& v : p.value) v += static_cast<T>(0.3 * static_cast<double>(rng.normal()));
}

// What Balance::loss adds: loss_weight E sum f P of every block.
double balance_loss(Moe<double>& model, const MoeShape& shape) {
    if (shape.balance != Balance::loss) return 0;
    double loss = 0;
    for (std::size_t b = 0; b < shape.blocks; ++b) {
        const Routing<double>& routing = model.experts(b).routing();
        const std::vector<std::size_t> rows = model.experts(b).rows();
        const auto tokens = static_cast<double>(routing.p.rows);
        for (std::size_t e = 0; e < shape.experts; ++e) {
            double mean = 0;
            for (std::size_t t = 0; t < routing.p.rows; ++t) mean += routing.p.row(t)[e] / tokens;
            loss += shape.loss_weight * static_cast<double>(shape.experts) * mean *
                    static_cast<double>(rows[e]) / (tokens * static_cast<double>(shape.active));
        }
    }
    return loss;
}

double loss_of(Moe<double>& model, const MoeShape& shape, const TokenBatch& batch) {
    NoCasts<double> casts;
    const double loss = token_loss(model.forward(batch, casts), batch).loss;
    return loss + balance_loss(model, shape);
}

void compute_gradients(Moe<double>& model, const TokenBatch& batch) {
    NoCasts<double> casts;
    Matrix<double> dy;
    token_loss(model.forward(batch, casts), batch, dy);
    model.backward(dy, casts);
}

void check_gradients(Moe<double>& model, const MoeShape& shape, const TokenBatch& batch) {
    compute_gradients(model, batch);
    const auto& names = model.plan().parameters;
    REQUIRE(names.size() == model.parameters().size());
    for (std::size_t i = 0; i < names.size(); ++i) {
        CAPTURE(names[i].name);
        CHECK(names[i].elements() == model.parameters()[i].value.size());
        CHECK(test::gradient_error(model.parameters()[i], [&] { return loss_of(model, shape, batch); }) <
              1e-6);
    }
}

std::size_t parameter_named(const Model<double>& model, const std::string& name) {
    const auto& all = model.plan().parameters;
    const auto hit = std::ranges::find(all, name, &ParameterSpec::name);
    REQUIRE(hit != all.end());
    return static_cast<std::size_t>(hit - all.begin());
}

bool all_zero(std::span<const double> values) {
    return std::ranges::all_of(values, [](double v) { return v == 0; });
}

std::vector<std::uint16_t> fixed(std::size_t tokens, std::initializer_list<std::uint16_t> experts) {
    std::vector<std::uint16_t> out;
    for (std::size_t t = 0; t < tokens; ++t) out.insert(out.end(), experts);
    return out;
}

std::string refusal(const std::map<std::string, std::string>& given, const std::string& recipe = "bf16") {
    TrainOptions options;
    options.model = "moe";
    options.recipes = recipe;
    try {
        for (const ModelOption& option : find_model("moe").options)
            if (const auto at = given.find(std::string(option.name)); at != given.end())
                options.sizes[at->first] = option.read(at->second);
        make_train_spec(options);
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

}  // namespace

TEST_CASE("gradients of experts against central differences, the choices as they were") {
    struct Case {
        std::size_t experts, active, shared;
        Balance balance;
    };
    for (const Case c : {Case{4, 2, 0, Balance::bias}, Case{4, 1, 0, Balance::none},
                         Case{3, 2, 2, Balance::loss}, Case{5, 3, 1, Balance::bias}}) {
        CAPTURE(c.experts);
        CAPTURE(c.active);
        MoeShape shape = small(c.experts, c.active);
        shape.shared = c.shared, shape.balance = c.balance;
        shape.loss_weight = 0.5;  // so that its gradient is no small part
        Moe<double> model(shape);
        disturb(model);
        const TokenBatch batch = some_tokens();
        compute_gradients(model, batch);
        for (std::size_t b = 0; b < shape.blocks; ++b)
            model.experts(b).fix(model.experts(b).routing().experts);
        check_gradients(model, shape, batch);
    }
}

TEST_CASE("with as many active experts as there are nothing is chosen, and the gates are the probabilities") {
    const MoeShape shape = small(3, 3);
    Moe<double> model(shape);
    disturb(model);
    check_gradients(model, shape, some_tokens());
    const Routing<double>& routing = model.experts(0).routing();
    for (std::size_t slot = 0; slot < routing.gates.size(); ++slot)
        CHECK(routing.gates[slot] ==
              doctest::Approx(routing.p.row(slot / 3)[routing.experts[slot]]).epsilon(1e-12));
}

TEST_CASE("all rows to one expert, one row, no row: gradients, and dW = 0 of an expert without rows") {
    const MoeShape shape = small(3, 1);
    Moe<double> model(shape);
    disturb(model);
    const TokenBatch batch = some_tokens();
    std::vector<std::uint16_t> one_row = fixed(batch.size(), {2});
    one_row[7] = 1;
    model.experts(0).fix(fixed(batch.size(), {2}));
    model.experts(1).fix(one_row);
    check_gradients(model, shape, batch);
    CHECK(model.experts(0).rows() == std::vector<std::size_t>{0, 0, batch.size()});
    CHECK(model.experts(1).rows() == std::vector<std::size_t>{0, 1, batch.size() - 1});
    for (const char* name : {"1.e0.gate_up.w", "1.e1.down.w", "2.e0.down.w"})
        CHECK(all_zero(model.parameters()[parameter_named(model, name)].gradient));
    for (const char* name : {"1.e2.gate_up.w", "2.e1.down.w", "2.e2.gate_up.w"})
        CHECK_FALSE(all_zero(model.parameters()[parameter_named(model, name)].gradient));
}

TEST_CASE("an expert that had rows and has none keeps no gradient of them") {
    const MoeShape shape = small(2, 1);
    Moe<double> model(shape);
    disturb(model);
    const TokenBatch batch = some_tokens();
    const auto send_to = [&](std::uint16_t expert) {
        for (std::size_t b = 0; b < shape.blocks; ++b) model.experts(b).fix(fixed(batch.size(), {expert}));
        compute_gradients(model, batch);
        return all_zero(model.parameters()[parameter_named(model, "1.e0.down.w")].gradient);
    };
    CHECK_FALSE(send_to(0));
    CHECK(send_to(1));
}

TEST_CASE("the chosen experts are those with the largest p + bias, and gates are shares of p alone") {
    const MoeShape shape = small(5, 2);
    Moe<double> model(shape);
    disturb(model);
    NoCasts<double> casts;
    model.forward(some_tokens(), casts);
    const auto bias = model.parameters()[parameter_named(model, "1.router.bias")].value;
    const Routing<double>& routing = model.experts(0).routing();
    for (std::size_t t = 0; t < routing.p.rows; ++t) {
        const auto p = routing.p.row(t);
        std::vector<std::size_t> order = {0, 1, 2, 3, 4};
        std::ranges::stable_sort(order, std::ranges::greater(),
                                 [&](std::size_t e) { return p[e] + bias[e]; });
        CHECK(std::accumulate(p.begin(), p.end(), 0.0) == doctest::Approx(1).epsilon(1e-12));
        CHECK(routing.experts[2 * t] == order[0]);
        CHECK(routing.experts[2 * t + 1] == order[1]);
        CHECK(routing.gates[2 * t] ==
              doctest::Approx(p[order[0]] / (p[order[0]] + p[order[1]])).epsilon(1e-12));
    }
}

TEST_CASE(
    "after an update a bias rises where an expert had fewer rows than the mean, and falls where it had "
    "more") {
    MoeShape shape = small(3, 1);
    shape.bias_rate = 0.125;
    for (const Balance balance : {Balance::bias, Balance::none}) {
        shape.balance = balance;
        Moe<double> model(shape);
        model.initialise(1);
        const TokenBatch batch = some_tokens();  // 24 tokens: the mean is 8
        std::vector<std::uint16_t> choices(batch.size(), 0);
        std::fill_n(choices.begin(), 8, std::uint16_t{1});
        for (std::size_t b = 0; b < shape.blocks; ++b) model.experts(b).fix(choices);
        model.begin_step(0);
        compute_gradients(model, batch);
        model.begin_step(0);  // given up and done again: rows count once
        compute_gradients(model, batch);
        model.after_update();
        const auto bias = model.parameters()[parameter_named(model, "2.router.bias")].value;
        const std::vector<double> expected =
            balance == Balance::bias ? std::vector{-0.125, 0.0, 0.125} : std::vector{0.0, 0.0, 0.0};
        CHECK(std::ranges::equal(bias, expected));
    }
}

TEST_CASE("a starved expert gets no token in its steps") {
    MoeShape shape = small(4, 2);
    shape.starve_from = 3, shape.starve_to = 5;
    Moe<double> model(shape);
    model.initialise(1);
    NoCasts<double> casts;
    for (int step = 0; step < 7; ++step) {
        CAPTURE(step);
        model.begin_step(step);
        model.forward(some_tokens(16), casts);
        CHECK((model.experts(0).rows()[0] == 0) == (step == 3 || step == 4));
    }
}

TEST_CASE("logits that are not finite name the router, and every token has different experts all the same") {
    Moe<double> model(small(4, 2));
    model.initialise(1);
    NoCasts<double> casts;
    model.forward(some_tokens(), casts);
    CHECK_FALSE(model.undecided());
    const auto weights = model.parameters()[parameter_named(model, "2.router.w")].value;
    std::ranges::fill(weights.first(16), 1e308);  // two infinite logits of either sign
    model.forward(some_tokens(), casts);
    REQUIRE(model.undecided());
    CHECK(model.plan().gemms[*model.undecided()].name == "2.router");
    const Routing<double>& routing = model.experts(1).routing();
    for (std::size_t t = 0; t < routing.p.rows; ++t)
        CHECK(routing.experts[2 * t] != routing.experts[2 * t + 1]);
}

TEST_CASE("tokens decoded one by one have the logits of all at once") {
    const MoeShape shape = small(4, 2);
    Moe<float> model(shape);
    disturb(model);
    NoCasts<float> casts;
    const TokenBatch all = some_tokens(1);
    KvState<float> whole, parts;
    const Matrix<float> together = model.decode(all, casts, whole);
    for (std::size_t t = 0; t < kContext; ++t) {
        CAPTURE(t);
        TokenBatch one{.sequences = 1, .context = 1};
        one.tokens = {all.tokens[t]};
        const Matrix<float>& logits = model.decode(one, casts, parts);
        CHECK(std::ranges::equal(logits.row(0), together.row(t)));
    }
}

TEST_CASE("delayed scales of an expert without rows see a 0 with empty=roll, and nothing with keep") {
    for (const bool rolls : {true, false}) {
        CAPTURE(rolls);
        MoeShape shape = small(2, 1);
        shape.empty_rolls = rolls;
        Moe<float> model(shape);
        disturb(model);
        RecipeCasts casts(parse_recipe("delayed:history=4"), model.plan(), 1);
        const TokenBatch batch = some_tokens();
        for (int step = 0; step < 6; ++step) {
            for (std::size_t b = 0; b < shape.blocks; ++b)
                model.experts(b).fix(fixed(batch.size(), {static_cast<std::uint16_t>(step == 0 ? 0 : 1)}));
            casts.begin_step(step, {});
            Matrix<float> dy;
            token_loss(model.forward(batch, casts), batch, dy);
            model.backward(dy, casts);
            const auto records = casts.end_step();
            for (const char* name : {"1.e0.gate_up.x", "1.e0.down.dy"}) {
                CAPTURE(name);
                const TensorId id = *model.plan().find(name);
                CHECK(std::isnan(records[id.index].amax) == (step > 0));
                if (step < 5) continue;
                // The one amax of the first step has left a history that rolls.
                CHECK(std::ranges::count(casts.delayed(id)->history(), 0.0F) == (rolls ? 4 : 3));
            }
        }
    }
}

TEST_CASE("what a mixture of experts refuses, in one sentence each") {
    CHECK(refusal({}).empty());
    CHECK(refusal({{"active", "9"}}) == "--active: 9 is more than --experts 8");
    CHECK(refusal({{"active", "4"}, {"experts", "4"}}).empty());
    CHECK(refusal({{"active", "4"}, {"experts", "4"}, {"starve-to", "3"}}) ==
          "--starve-to: with --active 4 every expert gets every token");
    CHECK(refusal({{"experts", "256"}, {"blocks", "16"}}) ==
          "--experts: 256 in 16 blocks are 8257 GEMMs; the most are 4095");
    CHECK(refusal({{"balance", "luck"}}) == "--balance: unknown balance 'luck'; valid: bias loss none");
    CHECK(refusal({{"bias-rate", "2"}}) == "--bias-rate: 2 is not in 0..1");
    CHECK(refusal({{"bias-rate", "a"}}) == "--bias-rate: 'a' is not a number");
    CHECK(refusal({{"balance", "loss"}}, "bf16:loss_scale=8") ==
          "--balance: loss has no loss scale; recipe bf16:loss_scale=8 has one");
    CHECK(refusal({}, "mxfp8:router=mxfp8").empty());
    CHECK(refusal({}, "mxfp8:wide=1.e0.down").empty());
    CHECK(refusal({}, "mxfp8:wide=1.e0.down+2.router").find("wide names 2.router, a router") !=
          std::string::npos);
}
