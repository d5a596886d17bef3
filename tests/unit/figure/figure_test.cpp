#include "core/figure/figure.h"

#include <doctest/doctest.h>

#include <cmath>

namespace fp8lab {
namespace {

const double kNaN = std::nan("");

TEST_CASE("the fit pads the finite data by 5 % of the axis' own scale") {
    Figure f{.y = {.scale = Scale::log10}};
    f.line("a", data({0, 10, kNaN, 5}), data({1, 100, 1e9, INFINITY}));
    f.series.back().shape = LineSeries{data({0, 10, kNaN}), data({1, 100, kNaN})};
    const Extents e = fit(f);
    CHECK(e.x.lo == doctest::Approx(-0.5));
    CHECK(e.x.hi == doctest::Approx(10.5));
    CHECK(e.y.lo == doctest::Approx(std::pow(10, -0.1)));
    CHECK(e.y.hi == doctest::Approx(std::pow(10, 2.1)));
}

TEST_CASE("NaN, Inf, and on log axes zero and below, do not enter the fit") {
    Figure f{.y = {.scale = Scale::log2}};
    f.line("a", data({0, 1, 2, 3, 4}), data({2, -5, 0, INFINITY, 8}));
    CHECK(fit(f).y.lo > 1);
    CHECK(fit(f).y.hi < 16);
    f.y.scale = Scale::linear;
    CHECK(fit(f).y.lo < -5);
    CHECK(fit(f).y.hi < 16);
}

TEST_CASE("nothing, one point and constants have a range all the same") {
    for (const Scale scale : {Scale::linear, Scale::log2, Scale::log10, Scale::symlog}) {
        Figure empty{.y = {.scale = scale}};
        CHECK(fit(empty).y.lo < fit(empty).y.hi);
        Figure one{.y = {.scale = scale}};
        one.line("a", data({3}), data({7}));
        CHECK(fit(one).y.lo < 7);
        CHECK(fit(one).y.hi > 7);
    }
    Figure constant;
    constant.line("a", data({1, 2}), data({0, 0}));
    CHECK(fit(constant).y == Range{-0.5, 0.5});
}

TEST_CASE("an axis' own range beats the fit, the view beats both, hidden series do not count") {
    Figure f{.x = {.range = Range{0, 2000}}};
    f.line("a", data({1, 2}), data({1, 2})).line("b", data({1, 2}), data({1, 500}));
    CHECK(fit(f).x == Range{0, 2000});
    CHECK(fit(f, {.x = Range{5, 6}}).x == Range{5, 6});
    CHECK(fit(f, {.hidden = {"b"}}).y.hi < 3);
}

TEST_CASE("bars stand on their base and heatmaps fill their axes: no padding there") {
    Figure bars;
    bars.bars("n", data({0, 1, 2}), data({5, 10}));
    CHECK(fit(bars).y.lo == 0);
    CHECK(fit(bars).y.hi == doctest::Approx(10.5));
    Figure map;
    map.heatmap("m", {.rows = 3, .cols = 4, .values = data(std::vector<double>(12))});
    CHECK(fit(map).x == Range{0, 4});
    CHECK(fit(map).y == Range{0, 3});
}

TEST_CASE("marks take no part in the fit") {
    Figure f;
    f.line("a", data({0, 1}), data({0, 1}))
        .hline("far", 1e6)
        .vline("far", 1e6)
        .xspan("far", 1, 1e6)
        .text(1e6, 1e6, "far");
    CHECK(fit(f).x.hi < 2);
    CHECK(fit(f).y.hi < 2);
}

}  // namespace
}  // namespace fp8lab
