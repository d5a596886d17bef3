#include <doctest/doctest.h>

#include <cmath>

#include "core/lesson/exercise.h"

using namespace fp8lab;

TEST_CASE("a typed number may be a decimal, a percentage, a fraction or a power") {
    CHECK(parse_answer("0.0588") == 0.0588);
    CHECK(parse_answer(" 5.5 % ") == doctest::Approx(0.055));
    CHECK(parse_answer("1/16") == 0.0625);
    CHECK(parse_answer("2^-9") == 0x1p-9);
    CHECK(std::isnan(parse_answer("")));
    CHECK(std::isnan(parse_answer("sixteen")));
    CHECK(std::isnan(parse_answer("16 steps")));
}

TEST_CASE("a state gives metrics before fields, numbers as numbers, and NaN or nothing where it has none") {
    const State state{
        .fields = {{"margin", "2"}, {"algo", "max"}},
        .metrics = {{.name = "sqnr_db", .value = 31.5, .unit = "dB"}, {.name = "worst", .text = "dy1"}}};
    CHECK(state.number("sqnr_db") == 31.5);
    CHECK(state.number("margin") == 2);
    CHECK(state.text("algo") == "max");
    CHECK(state.text("worst") == "dy1");
    CHECK(state.field("algo") == "max");
    CHECK(state.field("worst").empty());
    CHECK(std::isnan(state.number("worst")));
    CHECK(std::isnan(state.number("algo")));
    CHECK(std::isnan(state.number("absent")));
    CHECK(state.text("absent").empty());
}

TEST_CASE("a trail knows the states visited, the actions done and the last answer") {
    const auto at = [](std::string margin) { return State{.fields = {{"margin", margin}}, .metrics = {}}; };
    const auto margin_is = [](double m) { return [m](const State& s) { return s.number("margin") == m; }; };
    Trail trail{.start = at("0"), .steps = {}};
    CHECK(trail.now().text("margin") == "0");
    CHECK(std::isnan(trail.answered_number("stall")));
    trail.steps = {{{sets("margin", "1")}, at("1")},
                   {{acts("step"), types("stall", "8")}, at("1")},
                   {{types("stall", "16")}, at("2")}};
    CHECK(trail.now().text("margin") == "2");
    CHECK(trail.visited(margin_is(0)));
    CHECK(trail.visited(margin_is(1)));
    CHECK_FALSE(trail.visited(margin_is(3)));
    CHECK(trail.did("step"));
    CHECK_FALSE(trail.did("stall"));
    CHECK(trail.answered_number("stall") == 16);
}

TEST_CASE("no exercise is passed without an event of the learner's own") {
    Exercise exercise;
    exercise.judge = [](const Trail&, const Prediction*) {
        return Verdict{.conditions = {{.text = "always", .values = {}, .met = true}}};
    };
    Trail trail;
    CHECK_FALSE(judge_exercise(exercise, trail, nullptr).passed());
    trail.steps = {{{acts("step")}, {}}};
    CHECK(judge_exercise(exercise, trail, nullptr).passed());
    CHECK_FALSE(Verdict{}.passed());
}
