// L18: what its parts make of the shipped mixtures of experts, of drawn rows, recordings and trainings.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "labs/experts/model.h"
#include "labs/experts/model_casts.h"

using namespace fp8lab;
using namespace fp8lab::experts;

namespace {

template <class Result>
table::Told<Result> silent() {
    return {[](std::size_t, std::size_t) {}, [](Result) {}};
}

double metric(const Lab& lab, const std::string& name) {
    for (const Metric& m : lab.metrics())
        if (m.name == name) return m.value;
    FAIL("no metric " << name);
    return 0;
}

void set(MixtureLab& lab, std::initializer_list<const char*> assignments) {
    for (const char* assignment : assignments) set_field(lab.fields(), assignment);
    lab.update();
}

}  // namespace

TEST_CASE(
    "L18: a router in FP32 behind MXFP8 layers moves as many tokens as one in E4M3 behind BF16 layers") {
    RoutingMaker maker;
    const Routed layers = maker({"mxfp8", "fp32", 1}), router = maker({"bf16", "current", 1});
    CHECK(layers.change.changed_pct() > 3);
    CHECK(router.change.changed_pct() > 3);
    CHECK(std::fabs(layers.change.changed_pct() - router.change.changed_pct()) < 1.5);
    // Most of what a narrow router costs is its choices; of four bits little is.
    CHECK(router.change.choice_share_pct() > 80);
    CHECK(maker({"nvfp4", "fp32", 1}).change.choice_share_pct() < 30);
    const Routed none = maker({"bf16", "fp32", 1});
    CHECK(none.is_reference());
    CHECK(none.change.changed_pct() == 0);
    CHECK(none.margins.all_below == 0);
}

TEST_CASE("L18: margins count every token once in each block, and those that move") {
    RoutingMaker maker;
    const Routed routed = maker({"mxfp8", "fp32", 1});
    const Margins& m = routed.margins;
    CHECK(std::accumulate(m.tokens.begin(), m.tokens.end(), 0.0) == 2.0 * static_cast<double>(routed.tokens));
    const double moved = std::accumulate(m.moved.begin(), m.moved.end(), 0.0);
    CHECK(moved ==
          doctest::Approx(routed.change.changed_pct() / 100 * 2 * static_cast<double>(routed.tokens)));
    for (std::size_t i = 0; i < m.tokens.size(); ++i) CHECK(m.moved[i] <= m.tokens[i]);
    CHECK(m.most_below <= m.all_below);
    CHECK(m.largest_moved < m.all_below);
    CHECK(margin_title(routed).find("95 %") != std::string::npos);
}

TEST_CASE(
    "L18: the figure of pairs has the usual ones and the chosen one, the home card has them as recorded") {
    PairsMaker maker;
    const Pairs pairs = maker({"mxfp8", "mxfp4"}, silent<Pairs>());
    REQUIRE(pairs.rows.size() == 8);
    CHECK(pairs.is_complete());
    CHECK(pairs.rows.back().pair == pairs.chosen);
    const Pairs recorded = usual_pairs();
    REQUIRE(recorded.rows.size() == 7);
    for (std::size_t i = 0; i < recorded.rows.size(); ++i) {
        CHECK(recorded.rows[i].pair == pairs.rows[i].pair);
        // Another kernel of OpenBLAS moves close calls.
        CHECK(recorded.rows[i].mean() == doctest::Approx(pairs.rows[i].mean()).epsilon(0.05));
    }
    const Figure named = changed_figure(pairs, {}), bare = changed_figure(pairs, {}, false);
    CHECK(named.words.size() == 9);
    CHECK(named.series.size() == bare.series.size());
    CHECK(maker({"bf16", "fp32"}, silent<Pairs>()).rows.size() == 7);
}

TEST_CASE("L18: rows of a pool, padded, the own pool has the choices of the model") {
    GroupsMaker maker;
    const Groups drawn = maker({}), own = maker({.pool = "own", .tokens = 32768});
    CHECK(drawn.rows.size() == 256);
    CHECK(std::accumulate(drawn.rows.begin(), drawn.rows.end(), 0) == 8 * 4096);
    CHECK(drawn.shape(128).zeros_pct == doctest::Approx(32).epsilon(0.05));
    CHECK(drawn.shape(1).zeros_pct == 0);
    CHECK(own.rows.size() == 8);
    CHECK(std::accumulate(own.rows.begin(), own.rows.end(), 0) == 2 * kOwnTokens);
    CHECK(not_recorded(drawn).find("not recorded") != std::string::npos);
    CHECK_THROWS_AS(find_pool("7/1"), Error);
}

TEST_CASE("L18: times are those of the recordings, with a bound that is drawn and no time of another shape") {
    for (const char* card : {"h200", "h100"}) {
        CAPTURE(card);
        const Times times = times_of(card);
        REQUIRE(times.gemms);
        CHECK(times.gemms->speedup(kManyGroups, "wgrad") < 1.1);
        CHECK(times.gemms->speedup(kManyGroups, "fprop") > 1.9);
        const Figure figure = time_figure(times);
        CHECK(figure.x.names.size() == 12);
        CHECK(figure.words.size() == 4);
    }
    CHECK_FALSE(times_of("none").gemms);
    CHECK(time_title(times_of("none")).find("No grouped") == 0);
}

TEST_CASE("L18: a hop in the format of the GEMM adds exactly nothing, another one does") {
    HopMaker maker;
    CHECK(maker({{"mxfp8", "mxfp8", "bf16"}, 1}).added_pct() == 0);
    const Hops twice = maker({{"mxfp8", "block128:pow2=0", "bf16"}, 1});
    CHECK(twice.added_pct() > 0.3);
    CHECK(twice.rows.size() == 6);
    CHECK(hop_title(twice).find("adds") != std::string::npos);
    CHECK(maker({{"mxfp8", "bf16", "nvfp4"}, 1}).rows.size() == 7);
    CHECK(maker({{"bf16", "bf16", "bf16"}, 1}).added_pct() == 0);
}

TEST_CASE("L18: an expert without tokens comes back with old delayed scales, and with current ones whole") {
    TrainingMaker maker;
    TrainingSpec spec;
    spec.mixture.steps = 305, spec.mixture.starve = "100-300", spec.arms = "delayed,current";
    const Training training = maker(spec, silent<Training>());
    REQUIRE(training.arms.size() == 2);  // no BF16 beside a part of a training
    CHECK(training.is_complete());
    for (std::size_t step = 100; step < 300; ++step) REQUIRE(training.arms[0].rows[step] == 0);
    CHECK(training.arms[0].rows[99] > 0);
    CHECK(std::isnan(training.arms[0].dy_db[200]));
    CHECK(training.arms[0].return_db < 20);
    CHECK(training.arms[1].return_db > 25);
    CHECK(std::isnan(training.gap_pct(training.arms[0])));
    CHECK(return_title(training).find("Back after 200 steps") == 0);
}

TEST_CASE(
    "L18: metrics are known where their part is shown, active is at most the experts that may be chosen") {
    MixtureLab lab;
    lab.update();
    CHECK(metric(lab, "changed_pct") > 3);
    CHECK(std::isnan(metric(lab, "hop_added_pct")));
    CHECK(lab.provenance() == Provenance::cpu_emulated);
    set(lab, {"layers_in=bf16"});
    CHECK(std::isnan(metric(lab, "choice_share_pct")));
    set(lab, {"experiment=groups"});
    CHECK(lab.provenance() == Provenance::recorded);
    CHECK(metric(lab, "ridge_rows.wgrad") == doctest::Approx(679).epsilon(0.01));
    CHECK(metric(lab, "ridge_rows.wgrad.bf16") == doctest::Approx(384).epsilon(0.01));
    CHECK(lab.recipes().empty());
    set(lab, {"experiment=hop", "experts=4", "active=4", "starve=100-300"});
    CHECK(lab->params.active == 3);
    CHECK(lab.recipes().size() == 3);
    for (const Choice& choice : hop_choices()) CHECK_NOTHROW(parse_recipe(choice.id));
}
