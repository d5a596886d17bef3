// What recipes would have done to a log: scales against simulate(), bounds against casts of the values themselves.
#include "core/run/replay.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "core/formats/codec.h"
#include "core/scaling/delayed.h"
#include "core/scaling/quantizer.h"
#include "made_series.h"

using namespace fp8lab;

namespace {

// The share of the non-zero values that this cast makes 0, %.
double lost_pct(const std::vector<float>& values, const FormatInfo& format, float scale) {
    double lost = 0, all = 0;
    for (const float value : values) {
        if (value == 0 || !std::isfinite(value)) continue;
        all += 1;
        lost += decode(format, encode(format, value * scale)) == 0 ? 1 : 0;
    }
    return all == 0 ? 0 : 100 * lost / all;
}

std::vector<float> random_values(std::mt19937& random, double spread) {
    std::vector<float> values(500);
    std::normal_distribution<double> normal;
    for (float& value : values)
        value = static_cast<float>(normal(random) * std::exp2(spread * normal(random)));
    values[7] = 0;
    return values;
}

}  // namespace

TEST_CASE("replayed scales are those of simulate, for histories, reducers, margins and both formats") {
    std::mt19937 random(3);
    std::vector<float> amax;
    for (int i = 0; i < 300; ++i)
        amax.push_back(i == 50        ? INFINITY
                       : i % 41 == 40 ? 0.0F
                                      : std::exp2(static_cast<float>(random() % 2000) / 100 - 10));
    for (const char* name : {"x", "dy"})
        for (const int history : {1, 2, 16, 256, 1024})
            for (const char* algo : {"max", "most_recent"})
                for (const int margin : {-8, 0, 3}) {
                    const std::string text = "delayed:history=" + std::to_string(history) + ":algo=" + algo +
                                             ":margin=" + std::to_string(margin);
                    CAPTURE(text);
                    const Recipe recipe = parse_recipe(text);
                    const Replay replayed = replay_tensor(amaxes(name, amax), recipe);
                    const FormatInfo& format = find_format(*name == 'x' ? "e4m3" : "e5m2");
                    CHECK(replayed.format == &format);
                    const auto steps = simulate(amax, {&format, history, recipe.algo, margin, 1});
                    REQUIRE(replayed.steps.size() == steps.size());
                    int different = 0;
                    for (std::size_t i = 0; i < steps.size(); ++i) {
                        different += replayed.steps[i].scale != steps[i].scale_used ? 1 : 0;
                        different += replayed.steps[i].saturates != steps[i].saturates ? 1 : 0;
                    }
                    CHECK(different == 0);
                }
}

TEST_CASE("replayed scales take an average's decay and the rule for an amax of 0 from the recipe") {
    const std::vector<float> amax = {4, 1, 1, 0, 2};
    const auto scales = [&](const char* recipe) {
        std::vector<float> out;
        for (const ReplayStep& step : replay_tensor(amaxes("x", amax), parse_recipe(recipe)).steps)
            out.push_back(step.scale);
        return out;
    };
    // The average of 4 and 1 with decay 0.5 is 2.5.
    const auto averaged = scales("delayed:algo=ema0.5");
    CHECK(averaged[1] == 448.0F / 4);
    CHECK(averaged[2] == 448.0F / 2.5F);
    CHECK(scales("current") == std::vector<float>{112, 448, 448, 1, 224});
    CHECK(scales("current:zero_amax=inf") == std::vector<float>{112, 448, 448, INFINITY, 224});
    CHECK(scales("delayed:history=1:algo=most_recent:zero_amax=inf") ==
          std::vector<float>{1, 112, 448, 448, INFINITY});
}

TEST_CASE("the bounds hold what a cast of the values really loses") {
    std::mt19937 random(4);
    int steps = 0, exact = 0;
    for (const char* name : {"x", "dy"})
        for (const double spread : {0.0, 3.0, 9.0})
            for (const char* text :
                 {"unscaled", "delayed:history=4", "delayed:history=64:margin=8", "current"}) {
                std::vector<std::vector<float>> values;
                TensorSeries series(name);
                for (int step = 0; step < 40; ++step) {
                    values.push_back(random_values(random, spread));
                    if (step == 20) values.back()[3] = 1e6F;
                    if (step == 30) std::ranges::fill(values.back(), 0.0F);
                    log_values(series, step, values.back());
                }
                const Replay replayed = replay_tensor(series, parse_recipe(text));
                for (std::size_t i = 0; i < values.size(); ++i) {
                    const ReplayStep& step = replayed.steps[i];
                    const double truth = lost_pct(values[i], *replayed.format, step.scale);
                    CAPTURE(text);
                    CAPTURE(i);
                    CHECK(step.lost.low <= truth + 1e-9);
                    CHECK(step.lost.high >= truth - 1e-9);
                    ++steps;
                    exact += step.lost.low == step.lost.high ? 1 : 0;
                }
            }
    CHECK(steps == 960);
    CHECK(exact > 100);  // counters tell all where no binade is cut
    CHECK(exact < steps);
}

TEST_CASE("without counters only nothing, everything, or not known can be said") {
    const FormatInfo& e4m3 = find_format("e4m3");
    TensorSeries series("x");
    series.add({.step = 0, .amax = std::exp2(-10.0F)});
    series.add({.step = 1, .amax = std::nextafter(std::exp2(-10.0F), 1.0F)});
    series.add({.step = 2, .amax = 0});
    series.add({.step = 3});
    series.add({.step = 4, .amax = 1, .amin = 0.5F});
    const auto bounds = [&](std::size_t i) { return lost_bounds(series, series.points()[i], e4m3, 1); };
    CHECK(bounds(0).low == 100);  // 2^-10 lies half way between 0 and 2^-9: to even, 0
    CHECK(decode(e4m3, encode(e4m3, std::exp2(-10.0F))) == 0);
    CHECK(decode(e4m3, encode(e4m3, series.points()[1].amax)) > 0);
    CHECK(bounds(1).low == 0);
    CHECK(bounds(1).high == 100);
    CHECK(bounds(2).high == 0);
    CHECK(bounds(3).low == 0);
    CHECK(bounds(3).high == 100);
    CHECK(bounds(4).high == 0);  // the smallest magnitude is known
    // Four decimals: 0.0000 is below 0.00005, and nothing more is known.
    series.set_resolution(0.00005F);
    CHECK(bounds(2).low == 100);
    CHECK(lost_bounds(series, series.points()[2], e4m3, 1000).low == 0);
    CHECK(lost_bounds(series, series.points()[2], e4m3, 1000).high == 100);
}

TEST_CASE("block and row scales lose no more than the bound from above") {
    std::mt19937 random(5);
    for (const char* text : {"mxfp8", "mxfp8:mxrule=floor", "block128", "rowwise", "nvfp4"})
        for (const double spread : {0.0, 4.0, 8.0}) {
            CAPTURE(text);
            const Recipe recipe = parse_recipe(text);
            TensorSeries series("x");
            std::vector<float> values = random_values(random, spread), out(values.size());
            values.resize(512);
            out.resize(512);
            log_values(series, 0, values);
            const Replay replayed = replay_tensor(series, recipe);
            CHECK(replayed.from_above);
            const auto result =
                quantize(cast_plan(recipe, TensorClass::x), values, out, {.rows = 4, .cols = 128});
            double lost = 0, all = 0;
            for (std::size_t i = 0; i < values.size(); ++i) {
                all += values[i] != 0 ? 1 : 0;
                lost += values[i] != 0 && out[i] == 0 ? 1 : 0;
            }
            CHECK(replayed.steps[0].lost.high >= 100 * lost / all);
            CHECK(replayed.steps[0].lost.low == 0);
        }
}

TEST_CASE("a log of the recipe itself: its scales and lost shares are taken, not computed") {
    RunLog log;
    log.recipe = "delayed:history=16";
    TensorSeries series("x1");
    series.add({.step = 0, .amax = 1, .scale = 1, .underflow_pct = 3});
    series.add({.step = 1, .amax = 1, .scale = 7, .underflow_pct = 5});
    series.add({.step = 2, .amax = 1, .scale = 8, .underflow_pct = 7});
    log.tensors.push_back(series);
    CHECK(is_own_recipe(log, parse_recipe("delayed")));
    CHECK_FALSE(is_own_recipe(log, parse_recipe("delayed:history=4")));
    const Replay own = replay_tensor(series, parse_recipe("delayed"), true);
    CHECK(own.observed);
    CHECK(own.steps[1].scale == 7);
    CHECK(own.mean_lost().low == 6);  // without the first step
    CHECK(own.mean_lost().high == 6);
    const Replay other = replay_tensor(series, parse_recipe("delayed:history=4"), false);
    CHECK_FALSE(other.observed);
    CHECK(other.steps[1].scale == 448);
    log.recipe = "unheard-of";
    CHECK_FALSE(is_own_recipe(log, parse_recipe("delayed")));
    log.recipe.clear();
    CHECK(is_own_recipe(log, parse_recipe("current")));
}

TEST_CASE("wide recipes lose nothing, and NaN or Inf keep the scale") {
    TensorSeries series = amaxes("x", {1e-9F, 2, 2});
    CHECK(replay_tensor(series, parse_recipe("bf16")).steps[0].lost.high == 0);
    TensorSeries odd("x");
    log_values(odd, 0, {1, 2});
    log_values(odd, 1, {1, NAN});
    log_values(odd, 2, {1, 2});
    const Replay replayed = replay_tensor(odd, parse_recipe("delayed:history=1"));
    CHECK(replayed.steps[1].scale == 224);
    CHECK(replayed.steps[2].scale == 224);
}

TEST_CASE("the table of histories has each history under max, and most_recent") {
    std::vector<float> amax(200, 1.0F);
    amax[100] = 1e6F;
    const auto rows = histories(amaxes("x", amax), parse_recipe("delayed:margin=1"));
    REQUIRE(rows.size() == 7);
    CHECK(rows[0].history == 1);
    CHECK(rows[5].history == 1024);
    CHECK(rows[6].algo == AmaxAlgo::most_recent);
    // A spike stays in the history for as many steps as it has slots, or to the end of the log; the staging slot of
    // step 100 is one of them. 1e6 times too small a scale makes 1.0 become 0.
    CHECK(rows[0].mostly_lost == 1);
    CHECK(rows[1].mostly_lost == 4);
    CHECK(rows[2].mostly_lost == 16);
    CHECK(rows[3].mostly_lost == 64);
    CHECK(rows[4].mostly_lost == 99);
    CHECK(rows[5].mostly_lost == 99);
    CHECK(rows[6].mostly_lost == 1);
    for (const HistoryRow& row : rows) CHECK(row.saturated == 1);
}
