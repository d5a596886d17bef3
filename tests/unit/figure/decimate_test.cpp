#include "core/figure/decimate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace fp8lab {
namespace {

constexpr Rect kPlot = {0, 0, 400, 200};

std::vector<std::vector<Point>> runs(const std::vector<double>& xs, const std::vector<double>& ys, Range x,
                                     Range y, bool step = false, Scale y_scale = Scale::linear) {
    std::vector<std::vector<Point>> out;
    const Axis x_axis({}, x, 0, 400), y_axis({.scale = y_scale}, y, 200, 0);
    trace_line(xs, ys, x_axis, y_axis, step, kPlot,
               [&](std::span<const Point> run) { out.emplace_back(run.begin(), run.end()); });
    return out;
}

std::size_t points(const std::vector<std::vector<Point>>& all) {
    std::size_t n = 0;
    for (const auto& run : all) n += run.size();
    return n;
}

TEST_CASE("a single spike in a million samples survives at any zoom") {
    std::vector<double> xs, ys(1000000, 1.0);
    for (int i = 0; i < 1000000; ++i) xs.push_back(i);
    ys[777777] = 9;
    for (const double half : {777777.0, 100000.0, 5000.0, 300.0, 5.0}) {
        CAPTURE(half);
        const auto all = runs(xs, ys, {777777 - half, 777777 + half}, {0, 10});
        CHECK(points(all) <= 4 * 402);
        float top = 200;
        for (const auto& run : all)
            for (const Point p : run) top = std::min(top, p.y);
        CHECK(top == doctest::Approx(20));  // y = 9 of 0..10
    }
}

TEST_CASE("up to two samples a pixel, every sample is drawn as it is") {
    std::vector<double> xs, ys;
    for (int i = 0; i < 800; ++i) xs.push_back(i), ys.push_back(i % 7);
    CHECK(points(runs(xs, ys, {0, 799}, {0, 10})) == 800);
}

TEST_CASE("decimation keeps each column's envelope") {
    std::vector<double> xs, ys;
    for (int i = 0; i < 100000; ++i)
        xs.push_back(i), ys.push_back(5 + 4 * std::sin(i * 0.37) * std::cos(i * 0.0001));
    const auto all = runs(xs, ys, {0, 100000}, {0, 10});
    REQUIRE(all.size() == 1);
    for (const int column : {0, 57, 200, 399}) {
        float top = 1e9F, bottom = -1e9F;
        for (const Point p : all[0])
            if (static_cast<int>(p.x) == column) top = std::min(top, p.y), bottom = std::max(bottom, p.y);
        const auto first = ys.begin() + column * 250, last = first + 250;
        CHECK(static_cast<double>(top) ==
              doctest::Approx(200 - 20 * *std::max_element(first, last)).epsilon(0.001));
        CHECK(static_cast<double>(bottom) ==
              doctest::Approx(200 - 20 * *std::min_element(first, last)).epsilon(0.001));
    }
}

TEST_CASE("NaN lifts the pen, a sample between two gaps is a run of one point") {
    const double nan = std::nan("");
    const auto all = runs({0, 1, 2, 3, 4, 5, 6}, {1, 2, nan, 3, nan, 4, 5}, {0, 6}, {0, 10});
    REQUIRE(all.size() == 3);
    CHECK(all[0].size() == 2);
    CHECK(all[1].size() == 1);
    CHECK(all[2].size() == 2);
}

TEST_CASE("gaps are kept when decimating, and a comb of NaN costs what the pixels cost") {
    std::vector<double> xs, gap, comb;
    for (int i = 0; i < 100000; ++i) {
        xs.push_back(i);
        gap.push_back(i > 40000 && i < 60000 ? std::nan("") : 5);
        comb.push_back(i % 2 == 0 ? std::nan("") : 5);
    }
    const auto all = runs(xs, gap, {0, 100000}, {0, 10});
    REQUIRE(all.size() == 2);
    CHECK(all[0].back().x <= 161);
    CHECK(all[1].front().x >= 239);
    CHECK(points(runs(xs, comb, {0, 100000}, {0, 10})) <= 4 * 402);
}

TEST_CASE("on a log axis zero and below lift the pen, they and NaN and Inf are counted") {
    CHECK(runs({0, 1, 2, 3, 4}, {1, 10, 0, 10, 1}, {0, 4}, {0.1, 100}, false, Scale::log10).size() == 2);
    const Series series{"a", LineSeries{data({1, 2, 3, 4, 5}), data({-1, 0, std::nan(""), INFINITY, 2})}, {}};
    const Omitted omitted = count_omitted(series, {}, {.scale = Scale::log10});
    CHECK(omitted.nan == 1);
    CHECK(omitted.inf == 1);
    CHECK(omitted.not_positive == 2);
}

TEST_CASE("Inf leaves through the edge of the plot") {
    const auto all = runs({0, 1, 2}, {5, INFINITY, 5}, {0, 2}, {0, 10});
    for (const auto& run : all)
        for (const Point p : run) CHECK(kPlot.y0 <= p.y);
    REQUIRE(all.size() == 2);
    CHECK(all[0].back().y == doctest::Approx(0));
}

TEST_CASE("a segment through the plot keeps its slope however far its ends are") {
    const auto all = runs({-1e9, 1e9}, {-1e9, 1e9}, {0, 1}, {0, 1});
    REQUIRE(all.size() == 1);
    CHECK(all[0].front().x == doctest::Approx(0).epsilon(0.01));
    CHECK(all[0].front().y == doctest::Approx(200).epsilon(0.01));
    CHECK(all[0].back().x == doctest::Approx(400).epsilon(0.01));
    CHECK(std::fabs(all[0].back().y) < 1e-3F);
}

TEST_CASE("a step line holds its value until the next x") {
    const auto all = runs({0, 1, 2}, {2, 8, 4}, {0, 2}, {0, 10}, true);
    REQUIRE(all.size() == 1);
    bool corner = false;
    for (const Point p : all[0]) corner = corner || (p.x == 200 && p.y == 160);
    CHECK(corner);
}

TEST_CASE("a flat step line has no point twice: a canvas could not mitre it") {
    const auto all = runs({0, 1, 2, 3}, {4, 4, 4, 2}, {0, 3}, {0, 10}, true);
    REQUIRE(all.size() == 1);
    for (std::size_t i = 1; i < all[0].size(); ++i)
        CHECK((all[0][i].x != all[0][i - 1].x || all[0][i].y != all[0][i - 1].y));
}

TEST_CASE("x that runs backwards or jumps is drawn whole") {
    std::vector<double> xs, ys;
    for (int i = 0; i < 10000; ++i) xs.push_back(i < 5000 ? i : 9999 - i), ys.push_back(i < 5000 ? 2 : 8);
    const auto all = runs(xs, ys, {0, 5000}, {0, 10});
    float top = 200, bottom = 0;
    for (const auto& run : all)
        for (const Point p : run) top = std::min(top, p.y), bottom = std::max(bottom, p.y);
    CHECK(top == doctest::Approx(40));
    CHECK(bottom == doctest::Approx(160));
}

}  // namespace
}  // namespace fp8lab
