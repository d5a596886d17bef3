// Decoding with a cache: the bytes of a token do not depend on how the tokens before it came.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/nn/model.h"
#include "core/nn/ops/row_products.h"
#include "core/nn/recipe_casts.h"
#include "core/threads/parallel.h"

using namespace fp8lab;

namespace {

TrainSpec spec_of(int kv_heads = 4, int tie = 0) {
    TrainSpec spec;
    spec.model = "transformer";
    spec.sizes = {{"d", 40},    {"blocks", 2},   {"heads", 4}, {"kv-heads", kv_heads},
                  {"ffn", 150}, {"context", 24}, {"tie", tie}};
    spec.vocabulary = 19;
    return spec;
}

// As after some training: gains that differ, a head as large as the other weights.
std::unique_ptr<Model<float>> trained_looking(const TrainSpec& spec) {
    auto model = make_model(spec);
    model->initialise(7);
    Rng rng(3);
    for (const Parameter<float>& p : model->parameters())
        for (float& v : p.value) v += 0.1F * static_cast<float>(rng.normal());
    return model;
}

TokenBatch some_tokens(std::size_t sequences = 3, std::size_t context = 24) {
    TokenBatch batch{.sequences = sequences, .context = context};
    Rng rng(5);
    for (std::size_t i = 0; i < batch.size(); ++i) batch.tokens.push_back(static_cast<int>(rng.below(19)));
    return batch;
}

TokenBatch part_of(const TokenBatch& all, std::size_t first, std::size_t count) {
    TokenBatch part{.sequences = all.sequences, .context = count};
    for (std::size_t s = 0; s < all.sequences; ++s)
        for (std::size_t t = first; t < first + count; ++t)
            part.tokens.push_back(all.tokens[s * all.context + t]);
    return part;
}

// The logits of all tokens, in the rows of `all`, decoded in parts of these lengths, in turn.
Matrix<float> decoded(Model<float>& model, GemmCasts<float>& casts, const TokenBatch& all,
                      std::vector<std::size_t> lengths) {
    KvState<float> state;
    Matrix<float> out;
    for (std::size_t first = 0, i = 0; first < all.context; ++i) {
        const std::size_t count = std::min(lengths[i % lengths.size()], all.context - first);
        const Matrix<float>& logits = model.decode(part_of(all, first, count), casts, state);
        out.resize(all.size(), logits.cols);
        for (std::size_t s = 0; s < all.sequences; ++s)
            for (std::size_t t = 0; t < count; ++t)
                std::ranges::copy(logits.row(s * count + t), out.row(s * all.context + first + t).begin());
        first += count;
        CHECK(state.length == first);
    }
    return out;
}

RecipeCasts casts_of(const std::string& recipe, const Model<float>& model) {
    RecipeCasts casts(parse_recipe(recipe), model.plan(), 1);
    casts.begin_evaluation();
    return casts;
}

double distance(const Matrix<float>& a, const Matrix<float>& b) {
    double most = 0;
    for (std::size_t i = 0; i < a.values.size(); ++i)
        most = std::max(most, std::abs(static_cast<double>(a.values[i]) - static_cast<double>(b.values[i])));
    return most;
}

}  // namespace

TEST_CASE("a token has the same logits to the byte, decoded one by one, in parts or all at once") {
    const TokenBatch all = some_tokens();
    for (const int kv_heads : {4, 1})
        for (const int tie : {0, 1}) {
            const auto model = trained_looking(spec_of(kv_heads, tie));
            NoCasts<float> none;
            const Matrix<float> whole = decoded(*model, none, all, {24});
            CHECK(whole.values == decoded(*model, none, all, {1}).values);
            CHECK(whole.values == decoded(*model, none, all, {5, 1, 9}).values);
            CHECK(distance(whole, model->forward(all, none)) < 2e-5);  // logits of up to 10, summed by BLAS
            const TokenBatch last = part_of(all, 0, 24);
            Matrix<float> alone;  // nor do they depend on the other sequences
            for (std::size_t s = 0; s < 3; ++s) {
                TokenBatch one{.sequences = 1, .context = 24};
                one.tokens.assign(last.tokens.begin() + static_cast<std::ptrdiff_t>(24 * s),
                                  last.tokens.begin() + static_cast<std::ptrdiff_t>(24 * (s + 1)));
                const Matrix<float> logits = decoded(*model, none, one, {24});
                alone.values.insert(alone.values.end(), logits.values.begin(), logits.values.end());
            }
            CHECK(whole.values == alone.values);
        }
}

TEST_CASE("casts that read a token's values alone keep its bytes, a scale of all tokens of a call does not") {
    const auto model = trained_looking(spec_of());
    const TokenBatch all = some_tokens();
    struct Case {
        const char* recipe;
        bool same;
    };
    for (const Case c :
         {Case{"bf16", true}, Case{"rowwise", true}, Case{"block128", true}, Case{"mxfp8", true},
          Case{"mxfp4", true}, Case{"delayed", true}, Case{"delayed:scope=all", true},
          Case{"bf16:act=clamp", true}, Case{"current", false}, Case{"mxfp8:scope=all", false}}) {
        CAPTURE(c.recipe);
        RecipeCasts casts = casts_of(c.recipe, *model);
        const Matrix<float> whole = decoded(*model, casts, all, {24});
        const bool same = whole.values == decoded(*model, casts, all, {1}).values;
        CHECK(same == c.same);
        CHECK((decoded(*model, casts, all, {7, 2}).values == whole.values) == c.same);
        // As the pass without a cache: where all is cast alike, a value on the edge of two steps may take the other one.
        if (c.same) CHECK(distance(whole, model->forward(all, casts)) < 0.3);
    }
}

TEST_CASE("a cache that is shortened goes on as if the tokens behind had not been read") {
    const auto model = trained_looking(spec_of(2));
    const TokenBatch all = some_tokens(2);
    NoCasts<float> none;
    KvState<float> state, other;
    model->decode(part_of(all, 0, 10), none, state);
    model->decode(part_of(all, 12, 6), none, state);  // drafted, and refused
    state.length = 10;
    const Matrix<float> after = model->decode(part_of(all, 10, 5), none, state);
    model->decode(part_of(all, 0, 10), none, other);
    CHECK(after.values == model->decode(part_of(all, 10, 5), none, other).values);
    CHECK(state.length == 15);
}

TEST_CASE("a cache is refused where it is full, of other sequences or another model") {
    const auto model = trained_looking(spec_of()), other = trained_looking(spec_of(2));
    NoCasts<float> none;
    KvState<float> state;
    model->decode(some_tokens(3, 20), none, state);
    CHECK_THROWS_WITH_AS(model->decode(some_tokens(3, 5), none, state),
                         "cache: has 20 of 24 tokens: 5 more are too many", Error);
    CHECK_THROWS_AS(model->decode(some_tokens(2, 1), none, state), Error);
    CHECK_THROWS_AS(other->decode(some_tokens(3, 1), none, state), Error);
    CHECK(state.length == 20);
    TrainSpec mlp;
    mlp.layers = {2, 3, 1};
    NoCasts<float> casts;
    CHECK_THROWS_WITH_AS(make_model(mlp)->decode(some_tokens(1, 1), casts, state),
                         "cache: is for models of tokens", Error);
}

TEST_CASE("products by rows: as float64 says, and the same for every number of rows and threads") {
    Rng rng(11);
    for (const auto& [m, k, n] : {std::array<std::size_t, 3>{1, 1, 1},
                                  {2, 15, 3},
                                  {5, 64, 192},
                                  {33, 150, 70},
                                  {3, 16, 1},
                                  {129, 257, 130}}) {
        Matrix<float> a(m, k), b(n, k), out;
        rng.fill_normal(a.values), rng.fill_normal(b.values);
        if (m > 1) std::ranges::fill(a.row(1), -0.0F);
        multiply_rows(a, b, out);
        REQUIRE(out.rows == m);
        REQUIRE(out.cols == n);
        for (std::size_t r = 0; r < m; ++r)
            for (std::size_t c = 0; c < n; ++c) {
                double sum = 0, size = 0;
                for (std::size_t i = 0; i < k; ++i) {
                    const double term = static_cast<double>(a.row(r)[i]) * static_cast<double>(b.row(c)[i]);
                    sum += term, size += std::abs(term);
                }
                CHECK(std::abs(static_cast<double>(out.row(r)[c]) - sum) <= 1e-6 * size);
            }
        Matrix<float> row(1, k), alone;
        std::ranges::copy(a.row(m - 1), row.values.begin());
        multiply_rows(row, b, alone);
        CHECK(std::ranges::equal(alone.values, out.row(m - 1)));
        // Nor how many are computed together, to the sign of a zero.
        for (std::size_t r = 0; r < m; ++r)
            for (std::size_t c = 0; c < n; ++c) {
                float one = 0;
                dot_rows(a.row(r).data(), b.row(c).data(), k, k, 1, &one);
                CHECK(std::bit_cast<std::uint32_t>(one) == std::bit_cast<std::uint32_t>(out.row(r)[c]));
            }
        const int before = threads();
        Matrix<float> again;
        set_threads(3);
        multiply_rows(a, b, again);
        set_threads(before);
        CHECK(again.values == out.values);
    }
}
