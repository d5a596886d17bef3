// The rules, one after the other, and the run that comes with the program.
#include "core/run/findings.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "core/run/modes.h"
#include "core/run/read_run.h"
#include "core/run/rules.h"
#include "made_series.h"

using namespace fp8lab;

namespace {

const Recipe kDelayed = parse_recipe("delayed:history=1024");

RunLog log_of(TensorSeries series, const std::string& recipe = "bf16") {
    RunLog log;
    log.recipe = recipe;
    log.tensors.push_back(std::move(series));
    return log;
}

std::vector<float> around(float amax, int steps) {
    std::mt19937 random(1);
    std::vector<float> out;
    for (int i = 0; i < steps; ++i) out.push_back(amax * (1 + 0.1F * static_cast<float>(random() % 10)));
    return out;
}

// A series of a run under `delayed` whose scales and lost shares are logged.
TensorSeries own(const std::string& name, const std::vector<float>& amax, const std::vector<float>& scales) {
    TensorSeries series(name);
    for (std::size_t i = 0; i < amax.size(); ++i)
        series.add(
            {.step = static_cast<std::int32_t>(i), .amax = amax[i], .scale = scales[i], .underflow_pct = 0});
    return series;
}

// The only finding.
RunFinding one(const RunLog& log, const Recipe& recipe) {
    const auto found = findings(log, recipe);
    REQUIRE(found.size() == 1);
    return found[0];
}

}  // namespace

TEST_CASE("a healthy log has no findings, under any recipe") {
    for (const std::string& recipe : compared_recipes())
        CHECK(findings(log_of(amaxes("x", around(2, 300))), parse_recipe(recipe)).empty());
    CHECK(findings({}, kDelayed).empty());
    CHECK(findings(log_of(TensorSeries("x")), kDelayed).empty());
    CHECK(findings(log_of(amaxes("x", {1})), kDelayed).empty());
}

TEST_CASE("4: a spike that stays in the history, its step and its size") {
    std::vector<float> amax = around(1, 300);
    amax[100] = 1e6F;
    const RunFinding spike = one(log_of(amaxes("x", amax)), kDelayed);
    CHECK(spike.kind == FindingKind::spike);
    CHECK(spike.number == "4");
    CHECK(spike.step == 100);
    CHECK(spike.cause.find("kept in history 1024") != std::string::npos);
    CHECK(spike.treatment == "history 16, or most_recent");
    CHECK(spike.lost_pct == doctest::Approx(100.0 * 199 / 299));
    // The change that treats it leaves too little to be worth a word.
    CHECK(findings(log_of(amaxes("x", amax)), parse_recipe("delayed:algo=most_recent")).empty());
    // No spike: it stays large.
    for (std::size_t i = 100; i < amax.size(); ++i) amax[i] = 1e6F;
    CHECK(findings(log_of(amaxes("x", amax)), kDelayed).empty());
}

TEST_CASE("1: below the window without a scale") {
    const RunFinding below = one(log_of(amaxes("dy", around(1e-7F, 50))), parse_recipe("unscaled"));
    CHECK(below.kind == FindingKind::below_window);
    CHECK(below.number == "1");
    CHECK(below.step == 0);
    CHECK(below.lost_pct == 100);
    CHECK(findings(log_of(amaxes("dy", around(1e-7F, 50))), kDelayed).empty());
}

TEST_CASE(
    "2: overflow becomes NaN where the recipe does not saturate, and NaN before any cast is not FP8's") {
    std::vector<float> amax(60, 1.0F);
    amax[40] = 5;
    const auto log = log_of(amaxes("x", amax));
    const RunFinding nan = one(log, parse_recipe("delayed:overflow=nonsaturate"));
    CHECK(nan.kind == FindingKind::overflow_nan);
    CHECK(nan.number == "2");
    CHECK(nan.step == 40);
    CHECK(nan.treatment == "overflow=saturate");
    CHECK(nan.cause.find("becomes NaN") != std::string::npos);
    CHECK(findings(log, kDelayed).empty());
    amax[40] = INFINITY;
    TensorSeries series("x");
    for (std::size_t i = 0; i < amax.size(); ++i)
        series.add({.step = static_cast<std::int32_t>(10 * i), .amax = amax[i], .nonfinite = i == 40});
    const RunFinding odd = one(log_of(series), kDelayed);
    CHECK(odd.kind == FindingKind::not_fp8);
    CHECK(odd.number.empty());
    CHECK(odd.step == 400);
}

TEST_CASE("an outlier channel: the amax moves away from the median, and the scale follows the amax") {
    std::mt19937 random(2);
    std::normal_distribution<double> normal;
    TensorSeries series("b.1.down.x");
    for (int step = 0; step < 90; ++step) {
        std::vector<float> values;
        for (int i = 0; i < 400; ++i) values.push_back(static_cast<float>(normal(random)));
        if (step >= 45) values[0] = std::exp2(static_cast<float>(step - 40));
        log_values(series, step, values);
    }
    const RunFinding outlier = one(log_of(series), parse_recipe("current"));
    CHECK(outlier.kind == FindingKind::outlier_channel);
    CHECK(outlier.step >= 45);
    CHECK(outlier.step <= 50);
    CHECK(outlier.treatment.find("block scales") != std::string::npos);
    // Without counters the cause is not known.
    RunLog log = log_of(TensorSeries("x"), "current");
    for (int step = 0; step < 90; ++step)
        log.tensors[0].add(
            {.step = step, .amax = 1, .scale = 448, .underflow_pct = step < 30 ? 0.0F : 40.0F});
    const RunFinding loses = one(log, parse_recipe("current"));
    CHECK(loses.kind == FindingKind::loses);
    CHECK(loses.step == 30);
}

TEST_CASE("6: a tensor of zeros is a hint, except where four decimals hide it") {
    std::vector<float> amax = around(1, 50);
    amax[20] = 0;
    const RunFinding zeros = one(log_of(amaxes("dy", amax)), kDelayed);
    CHECK(zeros.kind == FindingKind::all_zero);
    CHECK(zeros.number == "6");
    CHECK(zeros.step == 20);
    TensorSeries rounded = amaxes("dy", amax);
    rounded.set_resolution(0.00005F);
    CHECK(findings(log_of(rounded), kDelayed).empty());
}

TEST_CASE("6: an infinite scale is found in the first step, logged or replayed, and before all others") {
    const RunFinding logged = one(log_of(own("w3", {0}, {std::numeric_limits<float>::infinity()}), "current"),
                                  parse_recipe("current"));
    CHECK(logged.kind == FindingKind::infinite_scale);
    CHECK(logged.number == "6");
    CHECK(logged.step == 0);
    RunLog log = log_of(amaxes("w3", {0, 1}));
    log.tensors.push_back(amaxes("x1", {1, 1}));
    CHECK(one(log, parse_recipe("current:zero_amax=inf")).name == "w3");
    CHECK(findings(log, parse_recipe("current:zero_amax=keep")).empty());
    const RunFinding delayed =
        one(log_of(amaxes("w3", {1, 0, 0, 1})), parse_recipe("delayed:history=1:zero_amax=inf"));
    CHECK(delayed.kind == FindingKind::infinite_scale);
    CHECK(delayed.step == 2);  // the scale of step 1 is of step 0
}

TEST_CASE("9, 3? and a resumed run: only where the run's own scales are logged") {
    const std::vector<float> amax = around(1, 400);
    const auto scales = [&](float factor) {
        std::vector<float> out;
        for (const float value : amax) out.push_back(factor / value);
        return out;
    };
    const Recipe delayed = parse_recipe("delayed");
    const RunFinding headroom = one(log_of(own("x", amax, scales(2)), "delayed"), delayed);
    CHECK(headroom.kind == FindingKind::headroom);
    CHECK(headroom.number == "9");
    CHECK(headroom.cause.find("8 binades") != std::string::npos);
    CHECK(findings(log_of(own("x", amax, scales(300)), "delayed"), delayed).empty());

    const RunFinding still = one(log_of(own("w", amax, std::vector<float>(400, 200)), "delayed"), delayed);
    CHECK(still.kind == FindingKind::fixed_scale);
    CHECK(still.number == "3?");
    CHECK(still.step == 200);
    CHECK(findings(log_of(own("x", amax, std::vector<float>(400, 200)), "delayed"), delayed).empty());

    std::vector<float> back = scales(300);
    back[150] = 1;
    const RunFinding resumed = one(log_of(own("x", amax, back), "delayed"), delayed);
    CHECK(resumed.kind == FindingKind::resumed);
    CHECK(resumed.step == 150);
}

TEST_CASE("tensors of which only the amax is known are counted") {
    RunLog log = log_of(amaxes("a.x", {1, 2}), "delayed");
    CHECK(without_lost_shares(log, kDelayed) == 1);
    TensorSeries counted("b.x");
    log_values(counted, 0, {1, 2, 3});
    log.tensors.push_back(counted);
    log.tensors.push_back(own("c.x", {1, 2}, {1, 1}));
    CHECK(without_lost_shares(log, kDelayed) == 2);  // what c lost was under another recipe
    CHECK(without_lost_shares(log, parse_recipe("delayed")) == 1);
}

TEST_CASE("findings come in the order of what they lose, and what is not finite before all") {
    std::vector<float> little = around(1, 300), much = little;
    little[250] = much[50] = 1e6F;
    RunLog log;
    log.tensors = {amaxes("a.x", little), amaxes("b.x", much), amaxes("c.x", around(1, 300))};
    TensorSeries odd("d.x");
    for (int step = 0; step < 300; ++step) odd.add({.step = step, .amax = 1, .nonfinite = step == 299});
    log.tensors.push_back(odd);
    const auto found = findings(log, kDelayed);
    REQUIRE(found.size() == 3);
    CHECK(found[0].name == "d.x");
    CHECK(found[1].name == "b.x");
    CHECK(found[1].tensor == 1);
    CHECK(found[2].name == "a.x");
}

TEST_CASE("the shipped run: one row x 1e6 in step 60, a channel that grows from step 150 on") {
    const RunLog log = read_run({FP8LAB_SOURCE "/assets/runs/tiny-swiglu.jsonl"});
    CHECK(log.tensors.size() == 18);
    CHECK(log.losses.size() == 240);
    CHECK(log.recipe == "bf16");
    CHECK(log.notes.empty());
    CHECK(recipe_text(default_recipe(log)) == recipe_text(kDelayed));
    const auto found = findings(log, parse_recipe("delayed:history=64"));
    REQUIRE(found.size() == 3);
    const auto is = [](const RunFinding& finding, const char* name, int step, FindingKind kind, double lost) {
        CHECK(finding.name == name);
        CHECK(finding.step == step);
        CHECK(finding.kind == kind);
        CHECK(std::round(10 * finding.lost_pct) == std::round(10 * lost));
    };
    // As computed with NumPy by the same rules.
    is(found[0], "out.x", 60, FindingKind::spike, 26.7);
    is(found[1], "inp.x", 60, FindingKind::spike, 25.6);
    is(found[2], "b.1.down.x", 153, FindingKind::outlier_channel, 18.8);

    struct Row {
        int saturated;
        double low, high;
        int mostly;
    };
    const Row expected[] = {{86, 0.4, 0.4, 1},   {19, 1.6, 1.7, 4},    {6, 6.4, 6.7, 16},
                            {2, 25.6, 26.8, 64}, {2, 71.5, 74.9, 179}, {2, 71.5, 74.9, 179},
                            {86, 0.4, 0.4, 1}};
    const auto rows = histories(*log.find("inp.x"), kDelayed);
    REQUIRE(rows.size() == std::size(expected));
    for (std::size_t i = 0; i < rows.size(); ++i) {
        CAPTURE(i);
        CHECK(rows[i].saturated == expected[i].saturated);
        CHECK(std::round(10 * rows[i].lost.low) == std::round(10 * expected[i].low));
        CHECK(std::round(10 * rows[i].lost.high) == std::round(10 * expected[i].high));
        CHECK(rows[i].mostly_lost == expected[i].mostly);
    }

    struct Under {
        int over;
        const char* worst;
        double pct;
    };
    const Under recipes[] = {{5, "b.1.gate_up.dy", 82.4}, {3, "out.x", 74.7},      {3, "out.x", 26.7},
                             {3, "b.1.down.x", 18.6},     {1, "b.1.down.x", 18.6}, {1, "b.1.down.x", 22.5}};
    const auto under = under_recipes(log);
    REQUIRE(under.size() == std::size(recipes));
    for (std::size_t i = 0; i < under.size(); ++i) {
        CAPTURE(under[i].recipe);
        CHECK(under[i].over == recipes[i].over);
        CHECK(log.tensors[under[i].worst].name() == recipes[i].worst);
        CHECK(std::round(10 * under[i].worst_pct) == std::round(10 * recipes[i].pct));
        CHECK(under[i].from_above == (i == 5));
    }
}

TEST_CASE("one logged step: what is not finite, and what a scale of 1 loses, are found") {
    TensorSeries odd("a.x");
    log_values(odd, 0, {1, NAN, 3, NAN});
    CHECK(one(log_of(odd), kDelayed).kind == FindingKind::not_fp8);
    const RunLog small = log_of(amaxes("a.dy", {1e-7F}));
    CHECK(one(small, parse_recipe("unscaled")).kind == FindingKind::below_window);
    // A delayed scale casts a first step with scale 1, which says nothing of the run.
    CHECK(findings(small, kDelayed).empty());
    const auto said = not_known(small, kDelayed);
    REQUIRE(said.size() == 2);
    CHECK(said[1].starts_with("1 of 1 tensor was logged in one step only"));
}

TEST_CASE("values above the window: where many steps saturate, and not where a few do") {
    const RunFinding all =
        one(log_of(amaxes("x", std::vector<float>(100, 1572864))), parse_recipe("unscaled"));
    CHECK(all.kind == FindingKind::saturates);
    CHECK(all.step == 0);
    // 1572864 / 464 = 3389.8
    CHECK(all.cause == "values above the window in 100 of 100 steps, up to 3.4e3 times: they saturate");
    CHECK(all.treatment == "a scale: delayed or current");
    std::vector<float> grows;
    for (int step = 0; step < 40; ++step) grows.push_back(std::ldexp(1.5F, step));
    const RunFinding growing = one(log_of(amaxes("x", grows)), kDelayed);
    CHECK(growing.kind == FindingKind::saturates);
    CHECK(growing.step == 1);
    CHECK(growing.treatment.find("margin") != std::string::npos);
    CHECK(findings(log_of(amaxes("x", grows)), parse_recipe("current")).empty());
    std::vector<float> few(100, 1.0F);
    few[50] = few[60] = few[70] = 10;
    CHECK(findings(log_of(amaxes("x", few)), parse_recipe("delayed:history=4")).empty());
}

TEST_CASE("4: an amax that has fallen for good is the history's fault, as is a spike of three steps") {
    std::vector<float> fallen(100, 3.0F);
    for (std::size_t i = 0; i < 20; ++i) fallen[i] = 1572864;
    const RunFinding stale = one(log_of(amaxes("x", fallen)), kDelayed);
    CHECK(stale.kind == FindingKind::stale_history);
    CHECK(stale.number == "4");
    CHECK(stale.step == 20);
    CHECK(stale.cause.find("history 1024 keeps the old one") != std::string::npos);
    // Lost under the scale of its own amax too: another cause.
    TensorSeries wide("dy");
    for (int step = 0; step < 60; ++step) log_values(wide, step, {3, 1e-12F, 1e-12F, 1e-12F});
    CHECK(one(log_of(wide), kDelayed).kind == FindingKind::loses);
}

TEST_CASE("4: a large spike is found where nothing below the amax was counted, and its loss is not known") {
    std::vector<float> amax(60, 3.0F);
    amax[20] = 3e5F;
    const RunFinding spike = one(log_of(amaxes("x", amax)), kDelayed);
    CHECK(spike.kind == FindingKind::spike);
    CHECK(spike.step == 20);
    CHECK_FALSE(spike.lost_known);
    CHECK(findings(log_of(amaxes("x", amax)), parse_recipe("delayed:algo=most_recent")).empty());
    amax[20] = 300;
    CHECK(findings(log_of(amaxes("x", amax)), kDelayed).empty());
}

TEST_CASE("6: neither NaN nor an empty tensor are zeros") {
    TensorSeries odd("a.x"), empty("b.x");
    for (int step = 0; step < 4; ++step) {
        log_values(odd, step, {NAN, NAN});
        log_values(empty, step, {});
    }
    CHECK(one(log_of(odd), kDelayed).kind == FindingKind::not_fp8);
    CHECK(findings(log_of(empty), kDelayed).empty());
}

TEST_CASE(
    "a loss that is not finite is found, and an upper bound is told of recipes with a scale per block") {
    RunLog log = log_of(amaxes("x", {1, 1}));
    CHECK_FALSE(first_nonfinite_loss(log));
    log.losses = {
        {0, 1}, {3, std::numeric_limits<double>::infinity()}, {4, std::numeric_limits<double>::quiet_NaN()}};
    REQUIRE(first_nonfinite_loss(log));
    CHECK(first_nonfinite_loss(log)->step == 3);
    TensorSeries wide("dy");
    for (int step = 0; step < 3; ++step) log_values(wide, step, {3, 1e-12F, 1e-12F, 1e-12F});
    const auto said = not_known(log_of(wide), parse_recipe("mxfp8"));
    REQUIRE(said.size() == 1);
    CHECK(said[0].find("only an upper bound of what becomes 0 is known: at most 75.0 %, of dy") !=
          std::string::npos);
    CHECK(not_known(log_of(wide), parse_recipe("current")).empty());
}

TEST_CASE("every rule says when it holds, with the limits in force, and its number is a mode of failure") {
    const auto modes = failure_modes();
    for (const RunRule& rule : run_rules()) {
        CAPTURE(std::string(rule.name));
        const std::string words = condition_of(rule);
        CHECK(words.ends_with('.'));
        CHECK(words.find('{') == std::string::npos);
        const std::string_view number = rule.number.substr(0, rule.number.find('?'));
        CHECK((number.empty() || std::ranges::find(modes, number, &FailureMode::id) != modes.end()));
    }
    const auto rule = std::ranges::find(run_rules(), FindingKind::spike, &RunRule::kind);
    Thresholds own;
    own.spike = 77;
    CHECK(condition_of(*rule, own).find("77 times the median") != std::string::npos);
}
