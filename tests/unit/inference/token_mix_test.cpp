// Tokens of a transformer in two formats: against what causality says, against whole layers, and against the numbers of
// another program.
#include "core/inference/token_mix.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "core/trainer/cpu_trainer.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

constexpr std::size_t kContext = 64;

const LowFormat& format(const char* id) { return find_low_format(id, "test"); }

std::shared_ptr<TokenModel> small_model(std::uint64_t seed, const std::string& task = "text",
                                        int blocks = 1) {
    TrainOptions options;
    options.model = "transformer";
    options.task = task;
    options.recipes = "bf16";
    options.seed = seed;
    options.steps = 40;
    options.sizes = {{"d", 32}, {"blocks", blocks}, {"heads", 2}, {"ffn", 96}};
    const TrainSpec spec = make_train_spec(options);
    const Scratch scratch;
    const auto trainer = make_cpu_trainer(spec);
    trainer->step(spec.steps);
    trainer->save(scratch.path);
    return std::make_shared<TokenModel>(spec, load_checkpoints(scratch.path, spec).arms.front(), 1);
}
std::shared_ptr<TokenModel> shipped_model(int batches) {
    TrainOptions options;
    options.model = "transformer";
    options.recipes = "bf16";
    const TrainSpec spec = make_train_spec(options);
    const auto loaded = load_checkpoints(FP8LAB_SOURCE "/assets/models/transformer-s1.safetensors", spec);
    return std::make_shared<TokenModel>(spec, loaded.arms.front(), batches);
}

std::size_t count(const std::vector<std::uint8_t>& chosen) {
    return static_cast<std::size_t>(std::ranges::count(chosen, 1));
}

}  // namespace

TEST_CASE("a token depends on those before it alone: blocks of scales do not mix the tokens") {
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
        CAPTURE(seed);
        TokenMix mix(small_model(seed), format("mxfp8"), format("mxfp4"));
        const std::size_t n = mix.tokens();
        const std::vector<double> high = mix.divergences(std::vector<std::uint8_t>(n, 1)),
                                  low = mix.divergences(std::vector<std::uint8_t>(n, 0)),
                                  first = mix.divergences(mix.chosen(Importance::first, 0.25, 1)),
                                  last = mix.divergences(mix.chosen(Importance::last, 0.25, 1));
        for (std::size_t t = 0; t < n; ++t) {
            if (t % kContext < kContext / 4) CHECK(first[t] == doctest::Approx(high[t]).epsilon(1e-7));
            if (t % kContext < kContext * 3 / 4) CHECK(last[t] == doctest::Approx(low[t]).epsilon(1e-7));
        }
        // Later tokens gain from the earlier ones: their keys and values are better.
        double with = 0, without = 0;
        for (std::size_t t = 0; t < n; ++t)
            if (t % kContext >= kContext / 4) with += first[t], without += low[t];
        CHECK(with < without);
        CHECK(mix.divergence(std::vector<std::uint8_t>(n, 1)) ==
              doctest::Approx(mix.all_high()).epsilon(1e-6));
        CHECK(mix.divergence(std::vector<std::uint8_t>(n, 0)) ==
              doctest::Approx(mix.all_low()).epsilon(1e-6));
    }
}

TEST_CASE("with one format twice the choice means nothing, and the ends do not depend on the measure") {
    TokenMix same(small_model(1), format("mxfp6-e2m3"), format("mxfp6-e2m3"));
    for (const ImportanceInfo& info : importances())
        CHECK(same.divergence(info.id, 0.3, 1) == doctest::Approx(same.all_low()).epsilon(1e-6));
    TokenMix mix(small_model(1), format("mxfp8"), format("nvfp4"));
    for (const ImportanceInfo& info : importances()) {
        CAPTURE(info.name);
        CHECK(mix.divergence(info.id, 0, 1) == doctest::Approx(mix.all_low()).epsilon(1e-6));
        CHECK(mix.divergence(info.id, 1, 1) == doctest::Approx(mix.all_high()).epsilon(1e-6));
    }
}

TEST_CASE("each measure takes the tokens that it says, rounded down to whole ones") {
    const auto model = small_model(1);
    TokenMix mix(model, format("mxfp8"), format("nvfp4"));
    const std::size_t n = mix.tokens();
    for (const ImportanceInfo& info : importances()) {
        CAPTURE(info.name);
        for (const double share : {0.0, 0.1, 0.25, 0.999, 1.0})
            CHECK(count(mix.chosen(info.id, share, 1)) ==
                  static_cast<std::size_t>(share * static_cast<double>(n)));
        CHECK(find_importance(info.name, "test") == info.id);
    }
    const std::vector<double> low = mix.divergences(std::vector<std::uint8_t>(n, 0));
    const std::vector<std::uint8_t> oracle = mix.chosen(Importance::oracle, 0.25, 1);
    double least = 1e9, most = 0;
    for (std::size_t t = 0; t < n; ++t) {
        if (oracle[t] != 0)
            least = std::min(least, low[t]);
        else
            most = std::max(most, low[t]);
    }
    CHECK(least >= most - 1e-9);
    // A character is chosen everywhere or nowhere, but one: where the share ends.
    const std::vector<std::uint8_t> rare = mix.chosen(Importance::rare, 0.25, 1);
    const std::vector<int>& tokens = model->data().test.tokens;
    int split = 0;
    for (int c = 0; c < model->spec().vocabulary; ++c) {
        bool in = false, out = false;
        for (std::size_t t = 0; t < n; ++t)
            if (tokens[t] == c) (rare[t] != 0 ? in : out) = true;
        split += in && out;
    }
    CHECK(split <= 1);
    // The first token of a sequence is read by all others, the last by itself alone.
    const std::vector<std::uint8_t> read = mix.chosen(Importance::attention, 0.5, 1);
    for (std::size_t s = 0; s < n / kContext; ++s) {
        CHECK(read[s * kContext] == 1);
        CHECK(read[(s + 1) * kContext - 1] == 0);
    }
    const auto draw = [&](std::uint64_t seed, int number) {
        return mix.chosen(Importance::random, 0.5, seed, number);
    };
    CHECK(draw(1, 0) == draw(1, 0));
    CHECK(draw(1, 0) != draw(1, 1));
    CHECK(draw(1, 0) != draw(2, 0));
}

TEST_CASE("whole layers: every subset, its share and its bits") {
    TokenMix mix(small_model(2), format("mxfp8"), format("mxfp4"));
    REQUIRE(mix.linears().size() == 4);
    const std::vector<double> subsets = mix.layer_subsets();
    REQUIRE(subsets.size() == 16);
    CHECK(subsets.front() == mix.all_low());
    CHECK(subsets.back() == mix.all_high());
    constexpr std::array<double, 4> kWeights = {96 * 32, 32 * 32, 192 * 32, 32 * 96};
    const double all = std::accumulate(kWeights.begin(), kWeights.end(), 0.0);
    for (const double share : {0.0, 0.25, 0.5, 1.0}) {
        double best = 1e9;
        for (std::uint32_t high = 0; high < 16; ++high) {
            double part = 0;
            for (std::size_t l = 0; l < 4; ++l)
                if ((high >> l & 1U) != 0) part += kWeights[l] / all;
            CHECK(mix.share_of_layers(high) == doctest::Approx(part));
            CHECK(mix.weight_bits_of_layers(high) == doctest::Approx(4.25 + 4 * part));
            if (part <= share + 1e-9) best = std::min(best, subsets[high]);
        }
        CHECK(subsets[best_layers(mix, subsets, share)] == best);
    }
    CHECK(mix.weight_bits() == doctest::Approx(12.5));
    CHECK(mix.activation_bits(0.25) == doctest::Approx(5.25));
    CHECK(mix.activation_bits_of_layers(0) == doctest::Approx(4.25));
    CHECK(mix.activation_bits_of_layers(15) == doctest::Approx(8.25));
}

TEST_CASE("only tokens that count are in the mean") {
    TokenMix mix(small_model(1, "copying"), format("mxfp8"), format("mxfp4"));
    const auto model = small_model(1, "copying");
    const std::vector<std::uint8_t> none(mix.tokens());
    const std::vector<double> of_tokens = mix.divergences(none);
    double sum = 0, all = 0;
    std::size_t n = 0;
    for (std::size_t t = 0; t < of_tokens.size(); ++t) {
        all += of_tokens[t];
        if (model->data().test.is_scored(t)) sum += of_tokens[t], ++n;
    }
    CHECK(n < of_tokens.size());
    CHECK(mix.divergence(none) * static_cast<double>(n) / sum == doctest::Approx(1).epsilon(1e-12));
    CHECK(std::fabs(mix.divergence(none) * static_cast<double>(of_tokens.size()) / all - 1) > 0.01);
}

TEST_CASE("the shipped transformer on 512 tokens: the numbers of another program, to all its digits") {
    TokenMix mix(shipped_model(1), format("mxfp8"), format("nvfp4"));
    const auto is = [](double value, double printed) { CHECK(std::fabs(value - printed) < 6e-6); };
    is(mix.all_high(), 0.00378);
    is(mix.all_low(), 0.06286);
    constexpr std::array kShares = {0.12, 0.25, 0.5, 0.75};
    const auto check = [&](Importance importance, const std::array<double, 4>& printed) {
        for (std::size_t i = 0; i < kShares.size(); ++i)
            is(mix.divergence(importance, kShares[i], 1), printed[i]);
    };
    check(Importance::attention, {0.04639, 0.04147, 0.02542, 0.01467});
    check(Importance::confidence, {0.05065, 0.04349, 0.03119, 0.01089});
    check(Importance::first, {0.04876, 0.05077, 0.02619, 0.01350});
    check(Importance::last, {0.05574, 0.04683, 0.03257, 0.01723});
    check(Importance::rare, {0.05175, 0.04433, 0.02751, 0.01259});
    check(Importance::oracle, {0.04089, 0.03156, 0.01766, 0.00934});
}

TEST_CASE("what cannot be mixed is refused") {
    CHECK_THROWS_WITH_AS(
        find_importance("size", "--important"),
        "--important: unknown importance 'size'; valid: attention confidence first last rare "
        "random oracle",
        Error);
    TokenMix mix(small_model(1, "text", 3), format("mxfp8"), format("nvfp4"));
    CHECK_THROWS_WITH_AS(mix.layer_subsets(), doctest::Contains("up to 8 linear layers; this model has 12"),
                         Error);
    for (const double share : {-0.1, 1.1, std::nan("")})
        CHECK_THROWS_WITH_AS(mix.chosen(Importance::first, share, 1), doctest::Contains("is 0 to 1"), Error);
    CHECK_THROWS_AS(mix.divergence(std::vector<std::uint8_t>(3)), Error);
}
