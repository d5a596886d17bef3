// When a frame is due, by a clock of the test's own.
#include "app/frame/frame_pace.h"

#include <doctest/doctest.h>

#include <cmath>

using fp8lab::FramePace;

TEST_CASE("nothing happens: no frame is due") {
    FramePace pace;
    pace.drew(10, 0.01);
    CHECK(std::isinf(pace.due_s({.time_s = 10})));
    CHECK(std::isinf(pace.due_s({.time_s = 1000})));
}

TEST_CASE("after input three frames are due at once") {
    FramePace pace;
    pace.drew(10, 0.01);
    CHECK(pace.due_s({.time_s = 10.01, .input = true}) == 0);
    CHECK(pace.due_s({.time_s = 10.02}) == 0);
    CHECK(pace.due_s({.time_s = 10.03}) == 0);
    CHECK(std::isinf(pace.due_s({.time_s = 10.04})));
}

TEST_CASE("what runs is drawn 30 times a second, and a slow frame leaves three quarters of the time to it") {
    FramePace pace;
    pace.drew(10, 0.001);
    CHECK(pace.due_s({.time_s = 10.0, .runs = true}) == doctest::Approx(1.0 / 30));
    CHECK(pace.due_s({.time_s = 10.02, .runs = true}) == doctest::Approx(1.0 / 30 - 0.02));
    CHECK(pace.due_s({.time_s = 10.04, .runs = true}) == 0);
    pace.drew(20, 0.05);
    CHECK(pace.due_s({.time_s = 20.05, .runs = true}) == doctest::Approx(0.15));
}

TEST_CASE("a clock is drawn each second, a caret four times, what runs before both") {
    FramePace pace;
    pace.drew(10, 0.001);
    CHECK(pace.due_s({.time_s = 10, .clock = true}) == doctest::Approx(1));
    CHECK(pace.due_s({.time_s = 10, .clock = true, .types = true}) == doctest::Approx(1));
    CHECK(pace.due_s({.time_s = 10, .types = true}) == doctest::Approx(0.25));
    CHECK(pace.due_s({.time_s = 10, .runs = true, .clock = true}) == doctest::Approx(1.0 / 30));
    CHECK(pace.due_s({.time_s = 10.3, .types = true}) == 0);
}
