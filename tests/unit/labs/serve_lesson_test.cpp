// The numbers of L17's lesson that come from the shipped networks. Medians over ten networks: curriculum.md 3.16.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "labs/serve/model_kv.h"
#include "labs/serve/model_methods.h"
#include "labs/serve/parts/model_draft.h"
#include "labs/serve/parts/model_rollout.h"
#include "tests/unit/labs/lesson_numbers.h"

using namespace fp8lab;
using namespace fp8lab::serve;

namespace {

// `text` stands in the lesson, and is `value` as it is rounded there.
void says(const char* text, double value, double within) {
    static const std::set<std::string> stated = test::lesson_numbers("serve");
    CAPTURE(text);
    CAPTURE(value);
    CHECK(stated.contains(text));
    CHECK(std::fabs(std::stod(text) - value) <= within);
}

template <class Result>
table::Told<Result> silent() {
    return {[](std::size_t, std::size_t) {}, [](Result) {}};
}

const NetworkSpec kTransformer = {.network = "transformer"};

}  // namespace

TEST_CASE("the numbers of L17's lesson: methods") {
    Evaluator evaluator;
    const auto chosen = [&](const char* network, const char* scheme, const char* method, bool both = false,
                            double amax = 1) {
        const CommonSpec common = {.network = {.network = network}, .both = both};
        return chosen_of({.common = common, .scheme = scheme, .method = method, .amax = amax}, evaluator);
    };
    const Chosen gptq = chosen("digits-s1", "nvfp4", "gptq");
    says("0.0173", gptq.nearest.divergence, 0.00005);
    says("0.00144", gptq.score.divergence, 0.000005);
    says("9.3", 100 * gptq.mean(&LayerErrors::w_nearest), 0.05);
    says("12.3", 100 * gptq.mean(&LayerErrors::w), 0.05);
    says("6.9", 100 * gptq.mean(&LayerErrors::out_nearest), 0.05);
    says("2.3", 100 * gptq.mean(&LayerErrors::out), 0.05);
    const auto by_inputs = [&](const char* network, ColumnOrder order) {
        const CommonSpec common = {.network = {.network = network}, .order = order};
        return chosen_of({.common = common, .scheme = "nvfp4", .method = "gptq"}, evaluator).score.divergence;
    };
    for (const auto& [network, given, act] : {std::array{"digits-s1", "0.0014", "0.0011"},
                                              {"digits-s2", "0.0019", "0.0011"},
                                              {"digits-s3", "0.0029", "0.0033"}}) {
        says(given, by_inputs(network, ColumnOrder::given), 0.00005);
        says(act, by_inputs(network, ColumnOrder::act), 0.00005);
    }
    says("8.4", chosen("digits-s1", "int8-row", "nearest").bits, 0.05);
    const Score floored = chosen("digits-s3", "int8", "awq", true).score;
    says("0.00047", floored.divergence, 0.000005);
    CHECK(floored.changed == 1);  // "one answer changes"
    const auto moved = [&](const char* scheme, double amax) {
        return chosen("transformer", scheme, "nearest", true, amax).score.divergence;
    };
    says("0.062", moved("nvfp4", 1), 0.0005);
    says("0.062", moved("nvfp4", 2), 0.0005);
    says("0.065", moved("nvfp4", 4096), 0.0005);
    says("0.113", moved("nvfp4", 0.5), 0.0005);
}

TEST_CASE("the numbers of L17's lesson: drafts") {
    DraftMaker maker;
    const auto draft = [&](const char* format, bool both = true) {
        return *maker({.network = kTransformer, .draft = format, .both = both, .others = false},
                      silent<Drafts>())
                    .chosen();
    };
    const auto best = [](const DraftCurve& curve, double cost) {
        return curve.run.speedup(curve.run.best_length(cost), cost);
    };
    const DraftCurve nvfp4 = draft("nvfp4");
    const double cost = DraftPrice{}.of(nvfp4.bits);
    says("89", 100 * nvfp4.run.alpha, 0.5);
    const auto [least, most] =
        std::minmax_element(nvfp4.run.by_position.begin(), nvfp4.run.by_position.begin() + 8);
    says("87", 100 * *least, 0.5);
    says("91", 100 * *most, 0.5);
    says("0.28", cost, 0.005);
    CHECK(nvfp4.run.best_length(cost) == 5);  // "with five proposed tokens"
    says("1.87", best(nvfp4, cost), 0.005);
    says("1.46", nvfp4.run.speedup(1, cost), 0.005);
    says("1.79", nvfp4.run.speedup(8, cost), 0.005);
    says("1.25", best(nvfp4, DraftPrice{.target = "e4m3"}.of(nvfp4.bits)), 0.005);
    says("2.7", best(nvfp4, DraftPrice{.cost = "1/7"}.of(nvfp4.bits)), 0.05);
    const DraftCurve wide = draft("nvfp4", false), e4m3 = draft("e4m3");
    says("93", 100 * wide.run.alpha, 0.5);
    says("2.13", best(wide, cost), 0.005);
    says("97", 100 * e4m3.run.alpha, 0.5);
    says("1.65", best(e4m3, DraftPrice{}.of(e4m3.bits)), 0.005);
}

TEST_CASE("the numbers of L17's lesson: rollouts") {
    RolloutMaker maker;
    constexpr double kNoLimit = std::numeric_limits<double>::infinity();
    const auto line = [&](const char* format, bool fp8_cache = false) {
        const RolloutSpec spec = {.network = kTransformer, .engine = {format, fp8_cache}, .others = false};
        return *maker(spec, silent<Rollouts>()).chosen();
    };
    const RolloutLine equal = line("bf16");
    CHECK(equal.mean_abs_d() == 0);
    CHECK(equal.median_ess_pct(kMostTokens, kNoLimit) == 100);
    const auto row = [&](const RolloutLine& of, const char* d, double within, const char* ess) {
        says(d, of.mean_abs_d(), within);
        says(ess, of.median_ess_pct(kMostTokens, kNoLimit), 0.5);
    };
    row(line("int8-row"), "0.018", 0.0005, "94");
    row(line("bf16", true), "0.037", 0.0005, "78");
    const RolloutLine e4m3_row = line("e4m3-row"), nvfp4 = line("nvfp4");
    row(e4m3_row, "0.055", 0.0005, "67");
    row(line("e4m3"), "0.059", 0.0005, "58");
    row(line("e4m3-row", true), "0.067", 0.0005, "39");
    says("0.23", nvfp4.mean_abs_d(), 0.005);
    says("2.0", nvfp4.median_ess_pct(kMostTokens, kNoLimit), 0.05);
    says("1.3", nvfp4.ess_pct(kMostTokens, kNoLimit).front(), 0.05);
    says("8.8", nvfp4.ess_pct(kMostTokens, kNoLimit).back(), 0.05);
    says("94", e4m3_row.median_ess_pct(8, kNoLimit), 0.5);
    says("43", nvfp4.median_ess_pct(8, kNoLimit), 0.5);
    says("19", nvfp4.median_ess_pct(kMostTokens, 2), 0.5);
}

TEST_CASE("the numbers of L17's lesson: caches") {
    CacheMeter meter(make_tokens(kTransformer));
    const auto cost = [&](const char* scheme, float factor = 1) {
        return meter.cost(find_cache_scheme(scheme, "test"), factor);
    };
    says("9", cost("one").largest_k, 0.5);
    says("6", cost("one").largest_v, 0.5);
    says("0.0021", cost("one").divergence, 0.00005);
    says("0.0021", cost("one", 32).divergence, 0.00005);
    const double calibrated = cost("tensor").divergence;
    says("0.0020", calibrated, 0.00005);
    CHECK(cost("tensor", 256).divergence == calibrated);  // "does not change at all"
    says("0.0015", cost("token-head").divergence, 0.00005);
    says("0.00005", cost("int8").divergence, 0.000005);
    says("0.028", cost("nvfp4").divergence, 0.0005);
    says("0.040", cost("mxfp4").divergence, 0.0005);
    says("0.019", cost("int4-g32").divergence, 0.0005);
    says("0.025", cost("nvfp4").k_divergence, 0.0005);
    says("0.0035", cost("nvfp4").v_divergence, 0.00005);
    CHECK(cost("one", 64).saturated_pct_k > 0);
    says("0.107", cost("one", 128).divergence, 0.0005);
    const CacheCost largest = cost("one", 256);
    says("31", largest.saturated_pct_k, 0.5);
    says("0.571", largest.divergence, 0.0005);
    says("286", largest.divergence / calibrated, 0.5);
    says("0.0083", cost("one", 1.0F / 256).divergence, 0.00005);
}
