// The options of four bits in a training on the CPU: w2d, rht, target, wide.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/nn/models/mlp/network.h"
#include "core/nn/models/mlp/tensors.h"
#include "core/nn/recipe_casts.h"
#include "core/nn/streams.h"
#include "core/scaling/hadamard.h"
#include "core/trainer/cpu_trainer.h"

using namespace fp8lab;

namespace {

// What casts know of a network with so many layers; they know no sizes.
ModelPlan plan_of(int layers) { return mlp_plan(std::vector<int>(static_cast<std::size_t>(layers) + 1, 8)); }

Matrix<float> normal(std::size_t rows, std::size_t cols, std::uint64_t seed) {
    Matrix<float> m(rows, cols);
    Rng(seed).fill_normal(m.values);
    return m;
}

TrainSpec small(const std::string& recipes, int batch = 40) {
    TrainOptions options;
    options.layers = std::vector{8, 24, 24, 3};
    options.batch = batch;
    options.steps = 30;
    options.recipes = recipes;
    return make_train_spec(options);
}

std::vector<std::vector<double>> losses(const std::string& recipes, int batch = 40) {
    auto trainer = make_cpu_trainer(small(recipes, batch));
    trainer->step(30);
    std::vector<std::vector<double>> all;
    for (const ArmSnapshot& arm : trainer->snapshot().arms) {
        all.emplace_back();
        for (const StepRecord& r : arm.records) all.back().push_back(r.loss);
    }
    return all;
}

constexpr std::uint64_t kSeed = 5;
constexpr int kStep = 4;

// What the trainer should read of a tensor: padded, rotated, cast with the stream of this step.
std::vector<float> expected(const Recipe& recipe, MlpTensor id, Along along, const Matrix<float>& value,
                            bool rotates) {
    std::vector<float> x = value.values;
    std::size_t rows = value.rows;
    if (rotates) {
        rows = rht_padded(rows);
        x.resize(rows * value.cols, 0.0F);
        rotate(x, x, rows, value.cols, Along::rows, te_signs());
    }
    quantize(cast_plan(recipe, id.tensor), x, x,
             {.rows = rows,
              .cols = value.cols,
              .along = along,
              .seed = kSeed,
              .stream = stream(Draw::cast, id.layer, kStep,
                               static_cast<unsigned>(id.tensor) * 2 + (along == Along::rows))});
    return x;
}

}  // namespace

TEST_CASE("rht rotates x and dy of wgrad along the batch, padded to 16 rows, and no other operand") {
    for (const std::string text : {"nvfp4-te", "nvfp4:rht=1:target=4or6:round=stochastic"})
        for (const std::size_t batch : {32U, 37U}) {
            CAPTURE(text);
            CAPTURE(batch);
            const Recipe recipe = parse_recipe(text);
            const Matrix<float> x = normal(batch, 20, 1), w = normal(24, 20, 2), dy = normal(batch, 24, 3);
            RecipeCasts casts(recipe, plan_of(2), kSeed);
            casts.begin_step(kStep, {});
            const MlpTensor xi{TensorClass::x, 2}, wi{TensorClass::w, 2}, dyi{TensorClass::dy, 2};
            const auto check = [&](MlpTensor id, Along along, const Matrix<float>& value, bool rotates) {
                const Matrix<float>& found = casts.operand(id, along, value);
                CHECK(found.rows == (rotates ? rht_padded(value.rows) : value.rows));
                CHECK(found.cols == value.cols);
                CHECK(found.values == expected(recipe, id, along, value, rotates));
            };
            check(xi, Along::cols, x, false);
            check(wi, Along::cols, w, false);
            check(dyi, Along::cols, dy, false);
            check(dyi, Along::rows, dy, true);
            check(xi, Along::rows, x, true);
        }
}

// Transformer Engine's cast of a rotated operand, written from numerics.md 1.5 alone: H16 as a matrix in float64, BF16
// by its bits, scales in FP32, E4M3 and E2M1 by search in a list of their values. Columns of whole numbers: the rotation is exact.
namespace oracle {

float to_bf16(double value) {
    auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    bits += 0x7FFF + (bits >> 16 & 1);
    return std::bit_cast<float>(bits & 0xFFFF0000);
}

// Of ascending values by code, whose even codes win ties.
double nearest(const std::vector<double>& values, double x) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < values.size(); ++i) {
        const double now = std::abs(values[i] - std::abs(x)), before = std::abs(values[best] - std::abs(x));
        if (now < before || (now == before && i % 2 == 0)) best = i;
    }
    return std::copysign(values[best], x);
}

std::vector<double> e4m3() {
    std::vector<double> out;
    for (int code = 0; code < 127; ++code)
        out.push_back(code < 8 ? std::ldexp(code, -9) : std::ldexp(8 + code % 8, code / 8 - 10));
    return out;
}

std::vector<double> rotated(const Matrix<float>& m, std::size_t col) {
    static constexpr std::array<int, 16> kSigns = {1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1};
    std::vector<double> out(m.rows);
    for (std::size_t group = 0; group < m.rows; group += 16)
        for (unsigned i = 0; i < 16; ++i)
            for (unsigned j = 0; j < 16; ++j) {
                const int sign = std::popcount(i & j) % 2 == 0 ? 1 : -1;
                out[group + i] +=
                    sign * kSigns[j] * static_cast<double>(m.values[(group + j) * m.cols + col]) / 4;
            }
    return out;
}

// Dequantised, in the layout of m; `bf16`: the rotated values are rounded to BF16 first.
std::vector<double> cast(const Matrix<float>& m, bool bf16) {
    static const std::vector<double> kE4m3 = e4m3(), kE2m1 = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    std::vector<double> x(m.values.size()), out(x.size());
    double largest = 0;
    for (std::size_t c = 0; c < m.cols; ++c) {
        const std::vector<double> column = rotated(m, c);
        for (std::size_t r = 0; r < m.rows; ++r) {
            x[r * m.cols + c] = bf16 ? static_cast<double>(to_bf16(column[r])) : column[r];
            largest = std::max(largest, std::abs(x[r * m.cols + c]));
        }
    }
    const float encode =
        448 * 6 / static_cast<float>(largest);  // steps 1 to 3 are in FP32: ties depend on it
    for (std::size_t c = 0; c < m.cols; ++c)
        for (std::size_t group = 0; group < m.rows; group += 16) {
            double top = 0;
            for (std::size_t k = 0; k < 16; ++k) top = std::max(top, std::abs(x[(group + k) * m.cols + c]));
            const double scale = nearest(
                             kE4m3, static_cast<double>(static_cast<float>(top) * (encode * (1 / 6.0F)))),
                         unit = scale * largest / 2688;
            const float factor = 1 / (static_cast<float>(scale) * (1 / encode));
            for (std::size_t k = 0; k < 16; ++k) {
                const std::size_t at = (group + k) * m.cols + c;
                out[at] = scale > 0
                              ? nearest(kE2m1, static_cast<double>(static_cast<float>(x[at]) * factor)) * unit
                              : 0;
            }
        }
    return out;
}

}  // namespace oracle

TEST_CASE("rht=bf16 rounds what was rotated to BF16 before amaxes and scales, as Transformer Engine does") {
    Matrix<float> m(64, 40);
    Rng rng(11);
    rng.fill_normal(m.values);
    for (float& v : m.values) v = std::round(100 * v);
    const auto found = [&](const char* text, TensorClass tensor) {
        RecipeCasts casts(parse_recipe(text), plan_of(2), kSeed);
        casts.begin_step(kStep, {});
        return casts.operand(MlpTensor{tensor, 2}, Along::rows, m).values;
    };
    const auto wrong = [](const std::vector<float>& values, const std::vector<double>& expected) {
        std::size_t out = 0;
        for (std::size_t i = 0; i < values.size(); ++i)
            out += std::abs(static_cast<double>(values[i]) - expected[i]) > 1e-5 * std::abs(expected[i]);
        return out;
    };
    const std::vector<double> with = oracle::cast(m, true), without = oracle::cast(m, false);
    CHECK(with != without);
    for (const TensorClass tensor : {TensorClass::x, TensorClass::dy}) {
        const std::vector<float> te = found("nvfp4-te:round_bwd=nearest:rht=bf16", tensor),
                                 ours = found("nvfp4-te:round_bwd=nearest", tensor);
        CHECK(wrong(te, with) == 0);
        CHECK(wrong(te, without) > 0);
        CHECK(wrong(ours, without) == 0);
        CHECK(wrong(ours, with) > 0);
    }
    // Operands that are not rotated are those of before.
    const auto of_fprop = [&](const char* text) {
        RecipeCasts casts(parse_recipe(text), plan_of(2), kSeed);
        casts.begin_step(kStep, {});
        return casts.operand(MlpTensor{TensorClass::x, 2}, Along::cols, m).values;
    };
    CHECK(of_fprop("nvfp4-te:rht=bf16") == of_fprop("nvfp4-te"));
}

TEST_CASE("dw of rotated operands is close to that of plain ones, with one operand rotated it is noise") {
    constexpr std::size_t kBatch = 1000;
    const Matrix<float> x = normal(kBatch, 32, 1), dy = normal(kBatch, 48, 2);
    Matrix<float> exact, plain, both;
    multiply_tn(dy, x, exact);
    const auto product = [&](const std::string& recipe, Matrix<float>& out) {
        RecipeCasts casts(parse_recipe(recipe), plan_of(1), 1);
        casts.begin_step(0, {});
        const Matrix<float> left = casts.operand(MlpTensor{TensorClass::dy, 1}, Along::rows, dy);
        multiply_tn(left, casts.operand(MlpTensor{TensorClass::x, 1}, Along::rows, x), out);
    };
    const auto sqnr_db = [&](const Matrix<float>& found) {
        double signal = 0, noise = 0;
        for (std::size_t i = 0; i < exact.values.size(); ++i) {
            const double a = static_cast<double>(exact.values[i]),
                         d = a - static_cast<double>(found.values[i]);
            signal += a * a, noise += d * d;
        }
        return 10 * std::log10(signal / noise);
    };
    product("nvfp4:round_bwd=nearest", plain);
    product("nvfp4:round_bwd=nearest:rht=1", both);
    CHECK(plain.values != both.values);
    CHECK(sqnr_db(plain) == doctest::Approx(17.4).epsilon(0.03));  // numerics.md 5.2: of normal operands
    CHECK(sqnr_db(both) == doctest::Approx(sqnr_db(plain)).epsilon(0.03));
}

TEST_CASE("w2d: fprop and dgrad read the same weights, without it they do not") {
    const Matrix<float> w = normal(40, 56, 7);
    const auto differ = [&](const std::string& text) {
        RecipeCasts casts(parse_recipe(text), plan_of(1), 1);
        casts.begin_step(0, {});
        const Matrix<float> first = casts.operand(MlpTensor{TensorClass::w, 1}, Along::cols, w);
        const Matrix<float>& second = casts.operand(MlpTensor{TensorClass::w, 1}, Along::rows, w);
        std::size_t n = 0;
        for (std::size_t i = 0; i < w.values.size(); ++i) n += first.values[i] != second.values[i];
        return n;
    };
    CHECK(differ("nvfp4:w2d=1") == 0);
    CHECK(differ("nvfp4:w2d=1:round=stochastic") == 0);  // one cast, not two with random numbers of their own
    CHECK(differ("nvfp4-te:target=4or6") == 0);
    CHECK(differ("nvfp4") > w.values.size() / 2);
}

TEST_CASE("wide layers have BF16 operands, the others those of the recipe") {
    const Matrix<float> value = normal(32, 48, 9);
    const auto operand = [&](const std::string& text, MlpTensor id) {
        RecipeCasts casts(parse_recipe(text), plan_of(3), 1);
        casts.begin_step(0, {});
        return casts.operand(id, id.tensor == TensorClass::dy ? Along::rows : Along::cols, value).values;
    };
    for (const TensorClass tensor : {TensorClass::x, TensorClass::w, TensorClass::dy})
        for (const std::string base : {"nvfp4-te", "delayed", "mxfp4", "block128"}) {
            CAPTURE(base);
            for (int layer = 1; layer <= 3; ++layer) {
                const MlpTensor id{tensor, layer};
                CHECK(operand(base + ":wide=first+last", id) == operand(layer == 2 ? base : "bf16", id));
            }
        }
}

TEST_CASE("all layers wide is bf16, a tensor of 4 bits in between is not") {
    const auto found =
        losses("bf16,nvfp4-te:wide=1+2+3,mxfp4:wide=first+2+last,nvfp4-te:wide=first+last,nvfp4-te");
    CHECK(found[1] == found[0]);
    CHECK(found[2] == found[0]);
    CHECK(found[3] != found[0]);
    CHECK(found[4] != found[3]);
}

TEST_CASE("each option changes a training, repeats itself, and learns") {
    const std::string recipes = "nvfp4,nvfp4:w2d=1,nvfp4:rht=1,nvfp4:target=4,nvfp4:target=4or6,nvfp4-te";
    for (const int batch : {40, 48}) {  // 40: padded to 48 where it is rotated
        const auto once = losses(recipes, batch);
        CHECK(once == losses(recipes, batch));
        for (std::size_t a = 0; a < once.size(); ++a) {
            CAPTURE(a);
            CHECK(once[a].back() < 0.9 * once[a].front());
            for (std::size_t b = a + 1; b < once.size(); ++b) CHECK(once[a] != once[b]);
        }
    }
}

TEST_CASE("records describe the first cast: dy of layer 1 as it is rotated, all others as they are") {
    auto trainer = make_cpu_trainer(small("nvfp4,nvfp4:rht=1", 48));
    trainer->set(Watch{MlpTensor{TensorClass::dy, 1}});
    trainer->step();
    const Snapshot snapshot = trainer->snapshot();
    const auto& plain = snapshot.arms[0].records[0].tensors;
    const auto& rotates = snapshot.arms[1].records[0].tensors;
    for (std::size_t t = 0; t < plain.size(); ++t) {
        CAPTURE(t);
        if (t == 2)
            CHECK(rotates[t].amax != plain[t].amax);
        else
            CHECK(rotates[t].amax == plain[t].amax);
        CHECK(std::isnan(rotates[t].scale));
        CHECK(rotates[t].sqnr_db > 10);
    }
    REQUIRE(snapshot.arms[1].watched);
    CHECK(snapshot.arms[1].watched->before.n == 48 * 24);
    CHECK(snapshot.arms[1].watched->before.counts != snapshot.arms[0].watched->before.counts);
}

TEST_CASE("a layer that the network does not have is refused, with the layers there are") {
    CHECK_THROWS_WITH_AS(small("bf16,nvfp4:wide=4"),
                         "--recipe: recipe nvfp4: wide names layer 4; the layers are 1-3", Error);
    CHECK_NOTHROW(small("nvfp4:wide=3"));
    TrainSpec spec = small("nvfp4");
    auto trainer = make_cpu_trainer(spec);
    CHECK_THROWS_AS(trainer->set(SetRecipe{0, parse_recipe("nvfp4:wide=4")}), Error);
    CHECK_NOTHROW(trainer->set(SetRecipe{0, parse_recipe("nvfp4-te:wide=3")}));
    trainer->step(2);
    spec.arms = {parse_recipe("mxfp4:wide=9")};
    CHECK_THROWS_AS(make_cpu_trainer(spec), Error);
}

TEST_CASE("a change of wide during a training: delayed scales of layers that stay keep their history") {
    auto trainer = make_cpu_trainer(small("delayed:history=8,delayed:history=8"));
    trainer->step(5);
    trainer->set(SetRecipe{0, parse_recipe("delayed:history=8:wide=first")});
    trainer->step(1);
    const Snapshot snapshot = trainer->snapshot();
    const auto &changed = snapshot.arms[0].records[5].tensors, &stayed = snapshot.arms[1].records[5].tensors;
    CHECK(changed[0].scale == 1);  // x1 in BF16
    CHECK(stayed[0].scale != 1);
    for (const std::size_t t : {3U, 4U, 6U, 7U}) CHECK(changed[t].scale == stayed[t].scale);
}
