// The parts draft, rollout and qat of L17: what they make of the engines of core/inference/serve and of the trainer.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/inference/lowering.h"
#include "core/threads/ask.h"
#include "core/trainer/cpu_trainer.h"
#include "labs/serve/model.h"
#include "labs/serve/parts/model_draft.h"
#include "labs/serve/parts/model_qat.h"
#include "labs/serve/parts/model_rollout.h"
#include "tests/scratch.h"

using namespace fp8lab;
using namespace fp8lab::serve;

namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

template <class Result>
table::Told<Result> silent() {
    return {[](std::size_t, std::size_t) {}, [](Result) {}};
}
// Counts what it is told.
template <class Result>
table::Told<Result> counting(int& shares, int& results) {
    return {[&shares](std::size_t done, std::size_t of) {
                CHECK(done <= of);
                ++shares;
            },
            [&results](Result) { ++results; }};
}

// Two blocks, the smallest of the shipped transformers.
NetworkSpec small() { return {"own", FP8LAB_SOURCE "/assets/models/transformer-s1.safetensors"}; }

Engine engine(const std::shared_ptr<TokenModel>& model, const char* format, const char* cache) {
    return {model, {.format = &find_low_format(format, "test"), .cache = &find_cache_scheme(cache, "test")}};
}

// The speed-up of drafts whose tokens are each accepted with probability alpha, at its best length.
double best_speedup(double alpha, double cost) {
    double best = 0;
    for (int g = 1; g <= 1000; ++g)
        best = std::max(best, (1 - std::pow(alpha, g + 1)) / (1 - alpha) / (g * cost + 1));
    return best;
}

}  // namespace

TEST_CASE("drafts of L17: the chosen one is measure_draft(), the others follow once each") {
    DraftMaker maker;
    int shares = 0, results = 0;
    const Drafts drafts = maker({.network = small()}, counting<Drafts>(shares, results));
    REQUIRE(drafts.curves.size() == kDrafts.size());
    CHECK(drafts.chosen()->format->id == "nvfp4");
    CHECK(shares > 0);
    CHECK(results == static_cast<int>(kDrafts.size()) - 1);  // after each but the last

    const auto model = make_tokens(small());
    Engine target(model, {}), low(model, {.format = &find_low_format("nvfp4", "test")});
    const DraftRun run = measure_draft(target, low, {});
    CHECK(drafts.chosen()->run.alpha == run.alpha);
    CHECK(drafts.chosen()->run.accepted == run.accepted);

    shares = 0;
    const Drafts alone =
        maker({.network = small(), .draft = "mxfp4", .others = false}, counting<Drafts>(shares, results));
    CHECK(shares == 0);  // it is known
    REQUIRE(alone.curves.size() == 1);
    CHECK(alone.chosen()->run.alpha < drafts.chosen()->run.alpha);
    const Drafts weights =
        maker({.network = small(), .both = false, .others = false}, counting<Drafts>(shares, results));
    CHECK(shares > 0);
    CHECK(weights.chosen()->run.alpha > drafts.chosen()->run.alpha);

    CHECK_THROWS_AS(maker({.network = small(), .draft = "nf4"}, silent<Drafts>()), Error);
    CHECK_THROWS_AS(maker({.network = {"digits-s1"}}, silent<Drafts>()), Error);
}

TEST_CASE("what a draft of L17 costs: bytes against the target's, 1/7, or one's own") {
    CHECK(DraftPrice{}.of(4.5) == 4.5 / 16);
    CHECK(DraftPrice{.target = "e4m3"}.of(4.5) == 4.5 / 8);
    CHECK(DraftPrice{.cost = "1/7", .target = "e4m3"}.of(4.5) == 1.0 / 7);
    CHECK(DraftPrice{.cost = "own", .own = 0.1}.of(4.5) == 0.1);
    CHECK(needed_for_seven(4.5 / 16) == "draft tokens for less than 1/7 of a pass");
    CHECK(needed_for_seven(1.0 / 7) == "every token accepted and drafts without end");
    for (const double cost : {0.02, 0.05, 0.1}) {
        const double alpha = std::stod(needed_for_seven(cost)) / 100;
        CAPTURE(cost);
        CHECK(best_speedup(alpha + 0.002, cost) > 7);
        CHECK(best_speedup(alpha - 0.002, cost) < 7);
    }
}

TEST_CASE("one verification of L17: the accepted tokens stand first, the number draws another") {
    RoundMaker maker;
    const DraftSpec draft{.network = small(), .draft = "e2m1"};
    int refused = 0, different = 0;
    const DraftRound first = maker({draft, 6, 1});
    for (int number = 1; number <= 8; ++number) {
        const DraftRound round = maker({draft, 6, number});
        REQUIRE(round.proposed.size() == 6);
        for (int k = 0; k < 6; ++k) {
            const DraftToken& token = round.proposed[static_cast<std::size_t>(k)];
            CHECK(token.accepted == (k < round.accepted));
            CHECK(token.tried == (k <= round.accepted));
            CHECK((token.q > 0 && token.q <= 1 && token.p >= 0 && token.p <= 1));
            if (token.tried && !token.accepted) CHECK(token.p < token.q);  // it would have been accepted
        }
        CHECK_FALSE(round.next.empty());
        refused += round.accepted < 6;
        different += round.context != first.context;
    }
    CHECK(refused > 0);
    CHECK(different >= 6);
    CHECK(maker({draft, 6, 1}).context == first.context);
    CHECK(maker({draft, 6, 1}).accepted == first.accepted);
    // At temperature 0 each has one token, and the accepted ones agree.
    const DraftRound cold = maker({{.network = small(), .draft = "e2m1", .temperature = 0}, 6, 3});
    for (const DraftToken& token : cold.proposed) {
        CHECK(token.q == 1);
        if (token.tried) CHECK(token.accepted == (token.p == 1));
    }
}

TEST_CASE("rollouts of L17: a line is the median of five draws of measure_rollout()") {
    RolloutMaker maker;
    const RolloutSpec spec{.network = small(), .engine = {"nvfp4", false}, .answers = 32, .others = false};
    const Rollouts rollouts = maker(spec, silent<Rollouts>());
    REQUIRE(rollouts.lines.size() == 1);
    const RolloutLine& line = *rollouts.chosen();
    const auto model = make_tokens(small());
    std::vector<double> each;
    double kl = 0;
    for (std::uint64_t seed = 1; seed <= kDraws; ++seed) {
        Engine low = engine(model, "nvfp4", "bf16"), trainer = engine(model, "bf16", "bf16");
        const Rollout draw = measure_rollout(low, trainer, {.answers = 32, .seed = seed});
        each.push_back(draw.ess_pct(kMostTokens, kNoLimit)), kl += draw.kl / kDraws;
    }
    std::ranges::sort(each);
    CHECK(line.ess_pct(kMostTokens, kNoLimit) == each);
    CHECK(line.median_ess_pct(kMostTokens, kNoLimit) == each[2]);
    CHECK(line.kl() == doctest::Approx(kl));
    CHECK(line.median_ess_pct(8, kNoLimit) > line.median_ess_pct(kMostTokens, kNoLimit));
    CHECK(line.median_ess_pct(kMostTokens, truncation_of("2")) > each[2]);
    CHECK(truncation_of("off") == kNoLimit);
    // Of made differences: log w = 0.3, -0.5, 0.1 after two tokens, 0.1, 0.2, -0.4 after one.
    RolloutLine made;
    made.draws = {{.d = Matrix<double>(3, 2)}};
    made.draws[0].d.values = {0.1, 0.2, 0.2, -0.7, -0.4, 0.5};
    CHECK(made.median_ratio(2) == doctest::Approx(std::exp(0.3)));
    CHECK(made.median_ratio(1) == doctest::Approx(std::exp(0.2)));
}

TEST_CASE(
    "rollouts of L17: equal engines lose nothing, and a computation that was given up goes on where it was") {
    RolloutMaker maker;
    const RolloutSpec equal{.network = small(), .engine = {"bf16", false}, .answers = 16, .others = false};
    const Rollouts same = maker(equal, silent<Rollouts>());
    CHECK(same.chosen()->mean_abs_d() == 0);
    CHECK(same.chosen()->median_ess_pct(kMostTokens, kNoLimit) == doctest::Approx(100).epsilon(1e-12));
    CHECK(ess_title(same, 56, "off") == "After 56 tokens 16 answers of BF16 count as 16");

    RolloutSpec low = equal;
    low.engine = {"e4m3-row", true};
    int asked = 0;
    const table::Told<Rollouts> impatient{[&](std::size_t, std::size_t) {
                                              if (++asked > 70) throw Cancelled();
                                          },
                                          [](Rollouts) {}};
    CHECK_THROWS_AS(maker(low, impatient), Cancelled);
    RolloutMaker fresh;
    const Rollouts after = maker(low, silent<Rollouts>()), expected = fresh(low, silent<Rollouts>());
    REQUIRE(after.chosen()->draws.size() == kDraws);
    CHECK(after.chosen()->ess_pct(56, kNoLimit) == expected.chosen()->ess_pct(56, kNoLimit));
    CHECK(name_of(low.engine) == "E4M3 row, FP8 cache");
    CHECK_THROWS_AS(maker({.network = small(), .temperature = 0}, silent<Rollouts>()), Error);
}

TEST_CASE("training back in L17 is train --fake from the network, scored by infer") {
    QatMaker maker;
    const QatSpec spec{.network = {"digits-s2"}, .scheme = "mxfp4", .steps = 30, .lr = 1e-3};
    const Qat qat = maker(spec, silent<Qat>());
    CHECK(qat.steps == std::vector<double>{0, 10, 20, 30});
    REQUIRE(qat.labels.seeds.size() == kQatSeeds);
    REQUIRE(qat.teacher.seeds.size() == kQatSeeds);
    const auto served = make_digits(spec.network);
    const Mix mix = uniform_mix(served->mlp->layers.size(), find_low_format("mxfp4", "test"));
    for (const auto& seed : qat.labels.seeds) CHECK(seed.front() == qat.nearest);

    const std::string file = FP8LAB_SOURCE "/assets/models/digits-s2.safetensors";
    for (const bool with_teacher : {false, true}) {
        TrainOptions options;
        options.task = "digits", options.steps = 30, options.lr = 1e-3, options.warmup = 0, options.seed = 2;
        options.init_from = file, options.recipes = "mxfp4:fake=1:out=fp32";
        if (with_teacher) options.teacher = file;
        const auto trainer = make_cpu_trainer(make_train_spec(options));
        trainer->step(30);
        const Scratch dir;
        trainer->save(dir.path);
        const TrainedMlp trained = read_mlp(std::filesystem::directory_iterator(dir.path)->path());
        const double divergence =
            divergence_of(served->reference, run_lowered(trained, served->data.test.x, mix).y);
        CHECK(qat.of(with_teacher).last(1) == divergence);
    }
    CHECK(qat.labels.median().back() < qat.nearest);
    CHECK(qat.gptq < qat.nearest);
}

TEST_CASE("training back in L17: recipes of the schemes, and what has none") {
    CHECK(fake_recipe("e4m3") == "current:out=fp32:fake=1");
    CHECK(fake_recipe("e2m1") == "current:fwd=e2m1:out=fp32:fake=1");
    CHECK(fake_recipe("int8-row") == "rowwise:fwd=int8:out=fp32:fake=1");
    CHECK_THROWS_AS(fake_recipe("nf4"), Error);
    QatMaker maker;
    CHECK_THROWS_AS(maker({.network = {"transformer"}}, silent<Qat>()), Error);
    CHECK_THROWS_AS(maker({.network = {"digits-s1"}, .scheme = "int4-g32"}, silent<Qat>()), Error);
}

TEST_CASE(
    "training back in L17: in E4M3 a large learning rate ends further than to nearest, a small one closer") {
    QatMaker maker;
    for (const char* network : {"digits-s1", "digits-s2", "digits-s3"}) {
        CAPTURE(network);
        const Qat large = maker({.network = {network}, .scheme = "e4m3", .lr = 5e-3}, silent<Qat>());
        CHECK(large.labels.median().back() > 2 * large.nearest);
        const Qat small_rate = maker({.network = {network}, .scheme = "e4m3", .lr = 1e-4}, silent<Qat>());
        CHECK(small_rate.labels.median().back() < 0.8 * small_rate.nearest);
        CHECK(train_back_title(small_rate, false).starts_with("Training on labels ends 1."));
    }
}

TEST_CASE("the parts of L17 as the lab has them: numbers of the shown one, Step, and cut weights") {
    ServeLab lab;
    const auto set = [&](std::initializer_list<std::string> assignments) {
        for (const std::string& assignment : assignments) set_field(lab.fields(), assignment);
        lab.update();
    };
    const auto value = [&](std::string_view name) {
        const auto metrics = lab.metrics();
        const auto it = std::ranges::find(metrics, name, &Metric::name);
        REQUIRE_MESSAGE(it != metrics.end(), name);
        return it->value;
    };
    set({"others=off", "model=own", "path=" FP8LAB_SOURCE "/assets/models/transformer-s1.safetensors",
         "experiment=draft"});
    const DraftRun& run = lab->drafts->chosen()->run;
    const double cost = lab->drafts->chosen()->bits / 16;
    CHECK(value("draft_cost") == cost);
    CHECK(value("speedup") == run.speedup(4, cost));
    CHECK(value("expected_g") ==
          doctest::Approx(1 + run.accepted[0] + run.accepted[1] + run.accepted[2] + run.accepted[3]));
    CHECK(value("best_speedup") == run.speedup(run.best_length(cost), cost));
    CHECK(value("alpha_8") == run.by_position[7]);
    CHECK(std::isnan(value("ess_pct")));
    const std::string before = lab->round->context;
    lab.act("round");
    CHECK(lab->params.round == 2);
    CHECK(lab->round->context != before);
    CHECK_THROWS_AS(lab.act("no such action"), Error);

    set({"experiment=rollout", "answers=16", "rollout=nvfp4", "truncate=2"});
    CHECK(std::isnan(value("speedup")));
    const RolloutLine& line = *lab->rollouts->chosen();
    CHECK(value("ess_pct") == line.median_ess_pct(kMostTokens, kNoLimit));
    CHECK(value("ess_truncated_pct") == line.median_ess_pct(kMostTokens, 2));
    CHECK(value("ess_least_pct") <= value("ess_pct"));
    CHECK(value("ess_pct") <= value("ess_most_pct"));
    const double all = value("ess_pct");
    set({"tokens=4"});
    CHECK(value("ess_pct") > all);

    set({"experiment=qat", "scheme=mxfp4", "steps=20"});
    CHECK(value("qat_divergence") == value("qat_labels"));
    set({"teacher=teacher"});
    CHECK(value("qat_divergence") == value("qat_teacher"));
    CHECK(value("qat_nearest") == lab->qat->nearest);
    CHECK(value("qat_gptq") == lab->qat->gptq);
}
