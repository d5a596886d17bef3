// What serving costs a trained transformer: caches in fewer bits, drafts, rollouts.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/inference/lowering.h"
#include "core/inference/score.h"
#include "core/inference/serve/cache_cost.h"
#include "core/inference/serve/draft.h"
#include "core/inference/serve/rollout.h"
#include "core/threads/parallel.h"

using namespace fp8lab;

namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

std::shared_ptr<TokenModel> shipped_model(int batches = 2) {
    TrainOptions options;
    options.model = "transformer";
    options.recipes = "bf16";
    const TrainSpec spec = make_train_spec(options);
    const auto loaded = load_checkpoints(FP8LAB_SOURCE "/assets/models/transformer-s1.safetensors", spec);
    return std::make_shared<TokenModel>(spec, loaded.arms.front(), batches);
}

const CacheScheme& scheme(const char* id) { return find_cache_scheme(id, "test"); }

EngineSpec lowered(const char* id, bool both = true) {
    return {.format = &find_low_format(id, "test"), .both = both};
}

// The probabilities of the token behind each sequence, at temperature 1.
Matrix<double> next_of(Engine& engine, const TokenBatch& batch) {
    KvState<float> state;
    const Matrix<float>& logits = engine.decode(batch, state);
    Matrix<double> p(batch.sequences, logits.cols);
    for (std::size_t s = 0; s < p.rows; ++s)
        probabilities(logits.row((s + 1) * batch.context - 1), 1, p.row(s));
    return p;
}

// Two tokens behind a prompt: p0, q0 of the first, row a of p1, q1 of the second behind a.
struct Tables {
    Matrix<double> p0, p1, q0, q1;
};
Tables tables_of(const std::shared_ptr<TokenModel>& model, const EngineSpec& draft) {
    Engine target(model, {}), low(model, draft);
    const TokenBatch prompt = held_out_pieces(*model, 1, 24, 5);
    const auto vocabulary = static_cast<std::size_t>(model->spec().vocabulary);
    TokenBatch longer{.sequences = vocabulary, .context = 25};
    for (std::size_t a = 0; a < vocabulary; ++a) {
        longer.tokens.insert(longer.tokens.end(), prompt.tokens.begin(), prompt.tokens.end());
        longer.tokens.push_back(static_cast<int>(a));
    }
    return {next_of(target, prompt), next_of(target, longer), next_of(low, prompt), next_of(low, longer)};
}

Matrix<double> rows(std::initializer_list<std::span<const double>> parts) {
    Matrix<double> out;
    for (const auto& part : parts) {
        out.values.insert(out.values.end(), part.begin(), part.end());
        out.cols = part.size(), ++out.rows;
    }
    return out;
}

// Instead of a refused token one from p: what a wrong implementation does.
DraftVerdict verify_wrongly(std::span<const int> proposed, const Matrix<double>& q, const Matrix<double>& p,
                            Rng& rng) {
    for (std::size_t i = 0; i < proposed.size(); ++i) {
        const auto token = static_cast<std::size_t>(proposed[i]);
        if (rng.uniform() * q.row(i)[token] >= p.row(i)[token]) return {i, drawn(p.row(i), rng.uniform())};
    }
    return {proposed.size(), drawn(p.row(proposed.size()), rng.uniform())};
}

// Rounds with two proposed tokens until there are two tokens, so many times: the chi-square of the pairs against the
// target's table as a normal number (Wilson and Hilferty). Pairs that are expected fewer than 5 times are one cell.
template <class Verify>
double pairs_z(const Tables& t, const Verify& verdict, std::uint64_t seed) {
    constexpr int kRuns = 200'000;
    const std::size_t n = t.p0.cols;
    std::vector<double> count(n * n);
    Rng rng(seed);
    for (int run = 0; run < kRuns; ++run) {
        const int a = drawn(t.q0.row(0), rng.uniform());
        const auto at = static_cast<std::size_t>(a);
        const int b = drawn(t.q1.row(at), rng.uniform());
        // The third row is never asked for a token that counts.
        const DraftVerdict first = verdict(std::array{a, b}, rows({t.q0.row(0), t.q1.row(at)}),
                                           rows({t.p0.row(0), t.p1.row(at), t.p0.row(0)}), rng);
        std::array<int, 3> text = {a, b, first.next};
        std::size_t length = first.accepted;
        text[length++] = first.next;
        if (length == 1) {  // a second round
            const auto behind = static_cast<std::size_t>(text[0]);
            const int c = drawn(t.q1.row(behind), rng.uniform());
            const DraftVerdict second =
                verdict(std::array{c}, rows({t.q1.row(behind)}), rows({t.p1.row(behind), t.p0.row(0)}), rng);
            text[1] = second.accepted == 1 ? c : second.next;
        }
        count[static_cast<std::size_t>(text[0]) * n + static_cast<std::size_t>(text[1])] += 1;
    }
    double chi = 0, rare = 0, rare_expected = 0;
    int cells = 0;
    for (std::size_t a = 0; a < n; ++a)
        for (std::size_t b = 0; b < n; ++b) {
            const double expected = kRuns * t.p0.row(0)[a] * t.p1.row(a)[b], seen = count[a * n + b];
            if (expected < 5) {
                rare += seen, rare_expected += expected;
            } else {
                chi += (seen - expected) * (seen - expected) / expected, ++cells;
            }
        }
    chi += (rare - rare_expected) * (rare - rare_expected) / rare_expected;
    const double df = cells, share = 2 / (9 * df);
    return (std::cbrt(chi / df) - (1 - share)) / std::sqrt(share);
}

}  // namespace

TEST_CASE("every cache scheme casts a token by itself, and calibrated ones saturate at their amax") {
    Matrix<float> x(6, 64);
    Rng(3).fill_normal(x.values, 4);
    x.values[5] = 600;
    const std::vector<float> amaxes = {2, 4, 8, 16};
    for (const CacheScheme& s : cache_schemes()) {
        CAPTURE(s.id);
        const Matrix<float> all = cast_for_cache(x, s, 4, amaxes);
        double error = 0, size = 0;
        for (std::size_t r = 0; r < x.rows; ++r) {
            Matrix<float> one(1, 64);
            std::ranges::copy(x.row(r), one.values.begin());
            const Matrix<float> alone = cast_for_cache(one, s, 4, amaxes);
            if (s.id != "nvfp4") CHECK(std::ranges::equal(alone.values, all.row(r)));
            for (std::size_t c = 0; c < 64 && r > 0; ++c) {
                const auto v = static_cast<double>(x.row(r)[c]), q = static_cast<double>(all.row(r)[c]);
                if (std::abs(v) < 2) error += (v - q) * (v - q), size += v * v;
            }
        }
        const bool four_bits = s.format->groups || s.id.ends_with("fp4");
        CHECK(std::sqrt(error / size) < (s.id == "bf16" ? 0.003 : four_bits ? 0.3 : 0.05));
        if (is_calibrated(s)) {
            for (std::size_t h = 0; h < 4; ++h) {
                float most = 0;
                for (std::size_t r = 0; r < x.rows; ++r)
                    for (std::size_t c = 0; c < 16; ++c)
                        most = std::max(most, std::abs(all.row(r)[16 * h + c]));
                CHECK(most <= (s.id == "head" ? amaxes[h] : 16) * 1.0001F);
            }
            CHECK_THROWS_AS(cast_for_cache(x, s, 4, {}), Error);
        }
    }
    CHECK(cast_for_cache(x, scheme("one"), 4, {}).values[5] == 448);
    CHECK(cast_for_cache(x, scheme("bf16"), 4, {}).values[5] == 600);
    CHECK_THROWS_WITH_AS(scheme("fp8"), doctest::Contains("token-head"), Error);
}

TEST_CASE("bytes of a token and layer: values, and the scales that come with them") {
    const auto bytes = [](const char* id, const KvShape& shape) {
        return cache_bytes_per_token(shape, scheme(id));
    };
    const KvShape mha{1, 32, 128}, gqa{1, 8, 128}, mla{.layers = 1, .latent = 512 + 64};
    CHECK(bytes("bf16", mha) == 2 * 4096 * 2);
    CHECK(bytes("one", mha) == 2 * 4096);
    CHECK(bytes("tensor", gqa) == 2 * 1024);
    CHECK(bytes("token", mha) == 2 * (4096 + 4));
    CHECK(bytes("token-head", mha) == 2 * (4096 + 32 * 4));
    CHECK(bytes("int8", gqa) == 2 * (1024 + 8 * 4));
    CHECK(bytes("nvfp4", gqa) == 2 * 1024 * 4.5 / 8);
    CHECK(bytes("mxfp4", gqa) == 2 * 1024 * 4.25 / 8);
    CHECK(bytes("int4-g32", gqa) == 2 * 1024 * 4.5 / 8);
    CHECK(bytes("bf16", mla) == 2 * 576);
    CHECK(bytes("one", mla) == 576);
    CHECK(bytes("token", mla) == 576 + 4);
    CHECK(bytes("nvfp4", mla) == 576 * 4.5 / 8);
}

TEST_CASE("an engine is the model: in FP32, in a format, and token by token with its cache") {
    const auto model = shipped_model(1);
    const TokenBatch& test = model->data().test;
    const Matrix<float> reference = model->forward();
    CHECK(model->scored(Engine(model, {}).forward(test)).values == reference.values);
    for (const bool both : {true, false}) {
        Engine engine(model, lowered("mxfp8", both));
        const Mix mix = uniform_mix(model->layers().size(), find_low_format("mxfp8", "test"), both);
        CHECK(model->scored(engine.forward(test)).values == model->run(mix).y.values);
        CHECK(engine.bits() == 8.25);
    }
    EngineSpec spec = lowered("mxfp8");
    spec.cache = &scheme("token-head");
    Engine engine(model, spec);
    KvState<float> whole, steps;
    const Matrix<float> at_once = engine.decode(test, whole);
    for (std::size_t t = 0; t < test.context; ++t) {
        TokenBatch one{.sequences = test.sequences, .context = 1};
        for (std::size_t s = 0; s < test.sequences; ++s)
            one.tokens.push_back(test.tokens[s * test.context + t]);
        const Matrix<float>& logits = engine.decode(one, steps);
        for (std::size_t s = 0; s < test.sequences; ++s)
            CHECK(std::ranges::equal(logits.row(s), at_once.row(s * test.context + t)));
    }
    spec.cache = &scheme("tensor");
    CHECK_THROWS_AS(Engine(model, spec), Error);
}

TEST_CASE("a cache of scale 1 loses K that is too large, a calibrated one does not notice its factor") {
    const auto model = shipped_model();
    const auto cost = [&](const char* id, float factor = 1) {
        return CacheMeter(model).cost(scheme(id), factor);
    };
    const CacheCost tensor = cost("tensor");
    CHECK(tensor.divergence == cost("tensor", 256).divergence);
    CHECK(cost("head").divergence == cost("head", 0.0625F).divergence);
    CHECK(cost("bf16").divergence < 1e-4);
    const CacheCost one = cost("one"), large = cost("one", 256);
    CHECK(one.saturated_pct_k == 0);
    CHECK(one.divergence < 2 * tensor.divergence);
    CHECK(large.saturated_pct_k > 20);
    CHECK(large.divergence > 100 * one.divergence);
    CHECK(large.largest_k == 256 * one.largest_k);
    CHECK(large.v_divergence == one.v_divergence);  // the factor is K's alone
    CHECK(cost("int8").divergence < cost("token-head").divergence / 8);
    const CacheCost four = cost("nvfp4");
    CHECK(four.k_divergence > four.v_divergence);
    CHECK(four.divergence > four.k_divergence);
    double saturated_pct = 0;  // one pass instead of three
    CHECK(CacheMeter(model).divergence(scheme("one"), 256, &saturated_pct) == large.divergence);
    CHECK(saturated_pct == large.saturated_pct_k);
    CHECK_THROWS_AS(cost("one", 0), Error);
}

TEST_CASE("two tokens by a draft have the target's distribution, and a wrong residual does not") {
    const Tables t = tables_of(shipped_model(1), lowered("mxfp4"));
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        CAPTURE(seed);
        const double right = pairs_z(t, verify, seed), wrong = pairs_z(t, verify_wrongly, seed);
        MESSAGE("z right " << right << ", from p instead of the residual " << wrong);
        CHECK(std::abs(right) < 4);
        CHECK(wrong > 20);
    }
}

TEST_CASE("a draft that is the target is always right, and lengths follow from what is accepted") {
    const auto model = shipped_model(1);
    Engine target(model, {}), same(model, {}), low(model, lowered("nvfp4"));
    const DraftRun all = measure_draft(target, same, {.sequences = 16});
    CHECK(all.longest() == 16);
    CHECK(all.alpha == doctest::Approx(1).epsilon(1e-12));
    for (const double share : all.accepted) CHECK(share == 1);
    CHECK(all.expected(5) == 6);
    CHECK(all.speedup(4, 0.25) == doctest::Approx(2.5));
    CHECK(all.best_length(0.1) == 16);
    CHECK(all.break_even(3) == 1);
    const DraftRun some = measure_draft(target, low, {.sequences = 128});
    CHECK(some.alpha > 0.8);
    CHECK(some.alpha < 0.96);
    CHECK(some.reached.front() == 128);
    for (std::size_t k = 0; k < 16; ++k) {
        const double before = k == 0 ? 1 : some.accepted[k - 1];
        CHECK(some.accepted[k] <= before);
        if (some.reached[k] > 0) CHECK(some.accepted[k] == doctest::Approx(before * some.by_position[k]));
    }
    const DraftRun greedy = measure_draft(target, same, {.temperature = 0, .sequences = 8});
    CHECK(greedy.accepted.back() == 1);
    CHECK(measure_draft(target, low, {.sequences = 128}).accepted == some.accepted);
    CHECK(measure_draft(target, low, {.sequences = 128, .seed = 2}).accepted != some.accepted);
}

TEST_CASE("equal engines give 0 to the bit, others an effective sample size") {
    const auto model = shipped_model(1);
    EngineSpec bf16 = lowered("bf16"), cache = bf16, four = lowered("nvfp4");
    bf16.cache = &scheme("bf16"), cache.cache = &scheme("one"), four.cache = &scheme("bf16");
    const auto run = [&](const EngineSpec& spec) {
        Engine rollout(model, spec), trainer(model, bf16);
        return measure_rollout(rollout, trainer, {});
    };
    const Rollout same = run(bf16), fp8_cache = run(cache), fp4 = run(four);
    CHECK(std::ranges::all_of(same.d.values, [](double d) { return d == 0; }));
    CHECK(same.kl == 0);
    CHECK(same.ess_pct(56, kNoLimit) == 100);
    CHECK(fp8_cache.mean_abs_d() > 0.01);
    CHECK(fp8_cache.ess_pct(56, kNoLimit) > fp4.ess_pct(56, kNoLimit));
    CHECK(fp4.ess_pct(56, 2) > fp4.ess_pct(56, kNoLimit));
    CHECK(fp4.ess_pct(8, kNoLimit) > fp4.ess_pct(56, kNoLimit));
    CHECK(fp4.kl > 10 * fp8_cache.kl);
    CHECK(fp4.over_2_pct() > fp8_cache.over_2_pct());
    Engine rollout(model, bf16), trainer(model, bf16);
    CHECK_THROWS_WITH_AS(measure_rollout(rollout, trainer, {.tokens = 57}), doctest::Contains("1 to 56"),
                         Error);
    CHECK_THROWS_AS(measure_rollout(rollout, trainer, {.temperature = 0}), Error);
}

TEST_CASE("engines that run beside each other give the bits that they give one after the other") {
    const auto model = shipped_model();
    const auto rollout = [&] {
        Engine low(model, lowered("nvfp4")), trainer(model, lowered("bf16"));
        return measure_rollout(low, trainer, {.tokens = 12, .answers = 32});
    };
    const auto draft = [&] {
        Engine target(model, {}), low(model, lowered("mxfp4"));
        return measure_draft(target, low, {.sequences = 32});
    };
    const int before = threads();
    set_threads(1);
    const Rollout alone = rollout();
    const DraftRun draft_alone = draft();
    set_threads(4);
    const Rollout beside = rollout();
    const DraftRun draft_beside = draft();
    set_threads(before);
    CHECK(beside.d.values == alone.d.values);
    CHECK(beside.kl == alone.kl);
    CHECK(draft_beside.alpha == draft_alone.alpha);
    CHECK(draft_beside.accepted == draft_alone.accepted);

    // A detached engine keeps its logits when another one of the model computes, and has those that it had before.
    Engine one(model, {}), other(model, lowered("nvfp4"));
    const TokenBatch prompt = held_out_pieces(*model, 2, 8, 5);
    const Matrix<float> attached = one.forward(prompt);
    one.detach();
    const Matrix<float>& detached = one.forward(prompt);
    CHECK(detached.values == attached.values);
    CHECK(other.forward(prompt).values != attached.values);
    CHECK(detached.values == attached.values);
}

TEST_CASE("the effective sample size: equal weights count fully, one large one as one") {
    CHECK(ess_pct(std::vector<double>{3, 3, 3, 3}, kNoLimit) == doctest::Approx(100));
    CHECK(ess_pct(std::vector<double>{50, 0, 0, 0}, kNoLimit) == doctest::Approx(25));
    const double w = std::log(3.0);  // weights 3, 1: 16 / (2 10)
    CHECK(ess_pct(std::vector<double>{w, 0}, kNoLimit) == doctest::Approx(80));
    CHECK(ess_pct(std::vector<double>{w, 0}, 2) == doctest::Approx(90));  // 2, 1: 9 / (2 5)
}

TEST_CASE("probabilities and draws: a temperature of 0, the edges of the numbers") {
    const std::vector<float> logits = {0, 2, 2, 1};
    std::vector<double> p(4);
    probabilities(logits, 0, p);
    CHECK(p == std::vector<double>{0, 1, 0, 0});
    probabilities(logits, 2, p);
    CHECK(p[1] / p[0] == doctest::Approx(std::exp(1.0)));
    const std::vector<double> q = {0, 0.25, 0.5, 0.25, 0};
    CHECK(drawn(q, 0) == 1);
    CHECK(drawn(q, 0.25) == 2);
    CHECK(drawn(q, 0.9999) == 3);
    CHECK(drawn(std::vector<double>{0.5, 0.4999, 0}, 0.99999) == 1);  // never one without probability
}
