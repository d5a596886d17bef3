#include "core/scaling/delayed.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/error.h"
#include "core/base/rng.h"

using namespace fp8lab;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMax = std::numeric_limits<float>::max();
using Amaxes = std::vector<float>;

SimulateSpec spec(int history, AmaxAlgo algo = AmaxAlgo::max, int margin = 0, int interval = 1) {
    return {&find_format("e4m3"), history, algo, margin, interval};
}

Amaxes scales_used(const Amaxes& amax, const SimulateSpec& s) {
    Amaxes used;
    for (const SimulateStep& step : simulate(amax, s)) used.push_back(step.scale_used);
    return used;
}

}  // namespace

TEST_CASE("an average of the history is that of the recurrence over its newest amaxes") {
    Rng rng(3);
    for (const int length : {1, 2, 5, 16, 1024})
        for (const float decay : {0.1F, 0.5F, 0.9F, 0.99F}) {
            DelayedScale scale(length, AmaxAlgo::ema, 0, 1, 448, false, decay);
            std::vector<float> amaxes;
            for (int step = 0; step < 40; ++step) {
                amaxes.push_back(std::fabs(rng.normal()) + 0.01F);
                scale.update(amaxes.back());
                const std::size_t held = std::min(amaxes.size(), static_cast<std::size_t>(length));
                double ema = static_cast<double>(amaxes[amaxes.size() - held]);
                for (std::size_t i = amaxes.size() - held + 1; i < amaxes.size(); ++i)
                    ema = static_cast<double>(decay) * ema +
                          (1 - static_cast<double>(decay)) * static_cast<double>(amaxes[i]);
                CHECK(static_cast<double>(scale.scale()) == doctest::Approx(448 / ema).epsilon(1e-5));
            }
        }
}

TEST_CASE(
    "an average keeps the scale while the history has a NaN or an Inf, and passes over steps of zeros") {
    for (const float bad : {NAN, INFINITY}) {
        DelayedScale scale(3, AmaxAlgo::ema, 0, 1, 448, false, 0.5F);
        scale.update(2);
        CHECK(scale.scale() == 224);
        for (const float amax : {bad, 1.0F}) {
            scale.update(amax);
            CHECK(scale.scale() == 224);
        }
        scale.update(1);  // it has rolled out
        scale.update(1);
        CHECK(scale.scale() == 448);
        scale.update(0);
        CHECK(scale.scale() == 448);
    }
}

TEST_CASE("a spike under history 4 follows the published trace row by row") {
    struct Row {
        float amax, used, scaled;
        bool saturates;
        Amaxes history;
        float next;
    };
    const std::vector<Row> expected = {
        {2, 1, 2, false, {0, 0, 0, 2}, 224},
        {4, 224, 896, true, {0, 0, 2, 4}, 112},
        {3, 112, 336, false, {0, 2, 4, 3}, 112},
        {100, 112, 11200, true, {0, 4, 3, 100}, 4.48F},
        {2, 4.48F, 8.96F, false, {0, 3, 100, 2}, 4.48F},
        {2, 4.48F, 8.96F, false, {0, 100, 2, 2}, 4.48F},
        {2, 4.48F, 8.96F, false, {0, 2, 2, 2}, 4.48F},
        {2, 4.48F, 8.96F, false, {0, 2, 2, 2}, 224},
        {2, 224, 448, false, {0, 2, 2, 2}, 224},
    };
    const auto steps = simulate({2, 4, 3, 100, 2, 2, 2, 2, 2}, spec(4));
    REQUIRE(steps.size() == expected.size());
    for (std::size_t t = 0; t < steps.size(); ++t) {
        CAPTURE(t);
        CHECK(steps[t].step == static_cast<int>(t));
        CHECK(steps[t].amax == expected[t].amax);
        CHECK(steps[t].scale_used == expected[t].used);
        CHECK(steps[t].amax_scaled == expected[t].scaled);
        CHECK(steps[t].saturates == expected[t].saturates);
        CHECK(steps[t].history == expected[t].history);
        CHECK(steps[t].scale_next == expected[t].next);
    }
}

TEST_CASE("history 1 looks at the last amax only") {
    CHECK(scales_used({2, 4, 3, 100, 2}, spec(1)) == Amaxes{1, 224, 112, 448.0F / 3, 4.48F});
    CHECK(simulate({2}, spec(1))[0].history == Amaxes{0});
}

TEST_CASE("most_recent does the same whatever the history") {
    CHECK(scales_used({2, 4, 3, 100, 2}, spec(16, AmaxAlgo::most_recent)) ==
          Amaxes{1, 224, 112, 448.0F / 3, 4.48F});
}

TEST_CASE("margin 1 keeps one binade spare and absorbs growth below 2x") {
    const auto steps = simulate({2, 4, 3, 5, 2}, spec(4, AmaxAlgo::max, 1));
    const Amaxes used = {1, 112, 56, 56, 44.8F};
    for (std::size_t t = 0; t < steps.size(); ++t) {
        CAPTURE(t);
        CHECK(steps[t].scale_used == used[t]);
        CHECK_FALSE(steps[t].saturates);
    }
}

TEST_CASE("margin is a power of two, also below zero") {
    for (const auto& [margin, scale] :
         {std::pair{0, 224.0F}, {1, 112.0F}, {2, 56.0F}, {-1, 448.0F}, {16, 224.0F / 65536}}) {
        CAPTURE(margin);
        CHECK(simulate({2}, spec(4, AmaxAlgo::max, margin))[0].scale_next == scale);
    }
}

// The edge amaxes of Transformer Engine's tests/pytorch/test_recipe.py.
TEST_CASE("an amax of zero, Inf or NaN keeps the scale, a tiny one gives the largest float") {
    for (const float amax : {0.0F, kInf, kNan}) {
        CAPTURE(amax);
        CHECK(simulate({amax}, spec(16))[0].scale_next == 1);
        CHECK(simulate({2, amax}, spec(16, AmaxAlgo::most_recent))[1].scale_next == 224);
    }
    for (const float amax : {1e-37F, std::numeric_limits<float>::denorm_min()})
        CHECK(simulate({amax}, spec(16))[0].scale_next == kMax);
    CHECK(simulate({2e-36F}, spec(16))[0].scale_next == 448.0F / 2e-36F);
}

TEST_CASE("an amax of zero rolls the history") {
    CHECK(simulate({2, 0, 0}, spec(4))[2].history == Amaxes{0, 2, 0, 0});
}

TEST_CASE("one Inf or NaN freezes the scale for exactly as many updates as the history is long") {
    for (const float poison : {kInf, kNan}) {
        CAPTURE(poison);
        // 8 needs 56, but 224 stays while the poison is in one of the four slots: the updates of t = 2, 3,
        // 4, 5.
        const auto steps = simulate({2, 2, poison, 8, 8, 8, 8, 8}, spec(4));
        for (std::size_t t = 2; t <= 5; ++t) CHECK(steps[t].scale_next == 224);
        CHECK(steps[6].scale_next == 56);
        CHECK_FALSE(std::isfinite(steps[2].history.back()));
        for (std::size_t t = 3; t <= 6; ++t) CHECK(steps[t].saturates);
        CHECK_FALSE(steps[7].saturates);
    }
}

TEST_CASE("saturates compares with the overflow threshold of the format, not with its maximum") {
    CHECK_FALSE(simulate({464}, spec(4))[0].saturates);
    CHECK(simulate({std::nextafter(464.0F, kInf)}, spec(4))[0].saturates);
    SimulateSpec wide = spec(4);
    wide.format = &find_format("e5m2");
    CHECK_FALSE(simulate({std::nextafter(61440.0F, 0.0F)}, wide)[0].saturates);
    CHECK(simulate({61440}, wide)[0].saturates);
    CHECK(simulate({2}, wide)[0].scale_next == 28672);
    CHECK(simulate({kInf}, wide)[0].saturates);
    CHECK_FALSE(simulate({kNan}, wide)[0].saturates);
}

TEST_CASE("with an interval the history rolls every step and the scale moves every N-th") {
    const auto steps = simulate({2, 4, 8, 1, 1, 1}, spec(2, AmaxAlgo::max, 0, 3));
    CHECK(scales_used({2, 4, 8, 1, 1, 1}, spec(2, AmaxAlgo::max, 0, 3)) == Amaxes{1, 1, 1, 56, 56, 56});
    CHECK(steps[5].scale_next == 448);
    CHECK(steps[1].history == Amaxes{0, 4});
}

TEST_CASE("a restored scale is computed at the step where the interval ends, not a whole interval later") {
    DelayedScale whole(2, AmaxAlgo::max, 0, 3, 448), resumed(2, AmaxAlgo::max, 0, 3, 448);
    for (const float amax : {2.0F, 4.0F}) whole.update(amax);
    CHECK(whole.scale_age() == 2);
    resumed.restore(whole.scale(), whole.scale_age(), whole.history());
    resumed.update(8);
    CHECK(resumed.scale() == 56);  // the third update
    CHECK(resumed.scale_age() == 0);
}

TEST_CASE("the history can be resized between steps: shorter keeps the newest, longer adds zeros") {
    DelayedScale state(4, AmaxAlgo::max, 0, 1, 448);
    for (const float amax : {7.0F, 5.0F, 3.0F}) state.update(amax);
    CHECK(state.history() == Amaxes{0, 7, 5, 3});
    state.set_history(3);
    CHECK(state.history() == Amaxes{0, 5, 3});
    state.set_history(5);
    CHECK(state.history() == Amaxes{0, 0, 0, 5, 3});
    state.update(1);
    CHECK(state.scale() == 448.0F / 5);
    CHECK(state.history() == Amaxes{0, 0, 5, 3, 1});
    state.set_margin(1);
    state.set_algo(AmaxAlgo::most_recent);
    state.update(2);
    CHECK(state.scale() == 112);
    state.set_history(1);
    CHECK(state.history() == Amaxes{0});
    state.restore(9, 0, {0, 6});
    CHECK(state.scale() == 9);
    state.set_algo(AmaxAlgo::max);
    state.update(0);
    CHECK(state.scale() == 448.0F / 12);
}

TEST_CASE("a history of no entries is refused and changes nothing") {
    DelayedScale state(4, AmaxAlgo::max, 0, 1, 448);
    state.update(2);
    const auto before = state.history();
    for (const int length : {0, -1}) CHECK_THROWS_AS(state.set_history(length), Error);
    CHECK(state.history() == before);
    CHECK_THROWS_AS(DelayedScale(0, AmaxAlgo::max, 0, 1, 448), Error);
}

TEST_CASE("power-of-two scales are rounded down") {
    CHECK(scale_from_amax(3, 448, 0, 1, true) == 128);
    CHECK(scale_from_amax(3.5F, 448, 0, 1, true) == 128);  // exactly
    CHECK(scale_from_amax(1e-37F, 448, 0, 1, true) == std::ldexp(1.0F, 127));
    CHECK(scale_from_amax(kMax, 1, 0, 1, true) == std::ldexp(1.0F, -128));  // a subnormal scale
}

TEST_CASE("an amax file may hold comments, blank lines, inf and nan") {
    const auto values = parse_amax("# seed 1\n2\n\n  4.5e-3\t\r\n+inf\nnan\n0\n1e-60\n 3", "a.txt");
    REQUIRE(values.size() == 7);
    CHECK(values[0] == 2);
    CHECK(values[1] == 4.5e-3F);
    CHECK(values[2] == kInf);
    CHECK(std::isnan(values[3]));
    CHECK(values[4] == 0);
    CHECK(values[5] == 0);
    CHECK(values[6] == 3);
    CHECK(parse_amax("", "a.txt").empty());
}

TEST_CASE("a bad amax is refused with its line") {
    for (const char* bad :
         {"-1", "two", "1 2", "1,", "1e50", "-inf", "-nan", "0x10", "+-1", "+", "2 # spike"}) {
        CAPTURE(bad);
        try {
            parse_amax("1\n# comment\n" + std::string(bad) + "\n", "a.txt");
            FAIL("accepted");
        } catch (const Error& e) {
            CHECK(e.kind() == ErrorKind::input);
            CHECK(e.where() == "a.txt");
            CHECK(e.why().starts_with("line 3: '" + std::string(bad) + "' is not an amax"));
        }
    }
}
