// All mixes, the greedy path, scores and the cascade, against the same computed one by one.
#include "core/inference/mixes.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/inference/cascade.h"
#include "core/threads/ask.h"
#include "tests/unit/inference/made.h"

using namespace fp8lab;
using namespace fp8lab::test;

namespace {

std::vector<const LowFormat*> formats(std::initializer_list<const char*> ids) {
    std::vector<const LowFormat*> out;
    for (const char* id : ids) out.push_back(&find_low_format(id, "test"));
    return out;
}

}  // namespace

TEST_CASE("the tree of all mixes gives each mix what its own forward pass gives") {
    const auto known = formats({"bf16", "e4m3", "nvfp4"});
    for (const std::size_t layers : {1u, 2u, 3u}) {
        const std::vector<std::size_t> sizes = {16, 24, 16, 5};
        const TrainedMlp n =
            made_network({sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(layers) + 1});
        const Matrix<float> x = normal(13, 16, 7);
        const Reference reference = made_reference(n, x);
        for (const bool activations : {true, false}) {
            const AllMixes all = all_mixes(n, x, reference, known, activations);
            REQUIRE(all.points.size() == static_cast<std::size_t>(std::pow(3, layers)));
            for (std::size_t i = 0; i < all.points.size(); ++i) {
                const Mix mix = all.mix(i);
                CHECK(all.find(mix) == i);
                CHECK(all.points[i].bits == doctest::Approx(bits_per_weight(n, mix)).epsilon(1e-12));
                CHECK(all.points[i].divergence == divergence_of(reference, run_lowered(n, x, mix).y));
            }
            Mix other = all.mix(0);
            other.weights[0] = &find_low_format("int8", "test");
            CHECK_FALSE(all.find(other));
        }
    }
    CHECK_THROWS_WITH_AS(all_mixes(made_network({2, 2, 2, 2, 2, 2, 2}), normal(2, 2, 1), {}, known, true),
                         doctest::Contains("up to 5 layers; this network has 6"), Error);
    const TrainedMlp n = made_network({16, 24, 5});
    const Matrix<float> x = normal(3, 16, 7);
    std::size_t told = 0;
    const auto count = [&](std::size_t done, std::size_t of) {
        CHECK(done == ++told);
        CHECK(of == known.size() * known.size());
    };
    all_mixes(n, x, made_reference(n, x), known, true, count);
    CHECK(told == known.size() * known.size());
    const AskBetween ask([] { throw Cancelled(); });
    CHECK_THROWS_AS(all_mixes(n, x, made_reference(n, x), known, true), Cancelled);
}

TEST_CASE("frontier, best under a budget and neighbours are what a look at every point finds") {
    Rng rng(4);
    std::vector<MixPoint> points;
    for (int i = 0; i < 300; ++i) points.push_back({4 + std::floor(40 * rng.uniform()) / 10, rng.uniform()});
    const auto frontier = frontier_of(points);
    for (std::size_t i = 0; i < points.size(); ++i) {
        bool beaten = false;
        for (std::size_t j = 0; j < points.size(); ++j)
            beaten = beaten ||
                     (points[j].bits <= points[i].bits && points[j].divergence < points[i].divergence) ||
                     (points[j].bits < points[i].bits && points[j].divergence == points[i].divergence);
        CHECK((std::ranges::find(frontier, i) != frontier.end()) == !beaten);
    }
    for (double budget = 3.9; budget < 8; budget += 0.13) {
        double best = INFINITY;
        for (const MixPoint& p : points)
            if (p.bits <= budget) best = std::min(best, p.divergence);
        const auto found = best_within(points, budget);
        CHECK(found.has_value() == std::isfinite(best));
        if (found) CHECK(points[*found].divergence == best);
    }
    std::vector<double> near;
    for (const MixPoint& p : points)
        if (std::fabs(p.bits - 5) < 0.1001) near.push_back(p.divergence);
    std::ranges::sort(near);
    const Neighbours found = neighbours_of(points, 5, near[3]);
    CHECK(found.count == near.size());
    CHECK(points[found.best].divergence == near.front());
    CHECK(points[found.worst].divergence == near.back());
    CHECK(found.median == doctest::Approx((near[(near.size() - 1) / 2] + near[near.size() / 2]) / 2));
    CHECK(found.rank == 4);
    CHECK(neighbours_of(points, 20, 0).count == 0);
}

TEST_CASE("the greedy path lowers one layer by one format in each step, down to the last format") {
    const TrainedMlp n = made_network({16, 16, 16, 16, 16, 16, 8});  // 6 layers: too many for all mixes
    const Matrix<float> x = normal(9, 16, 7);
    const Reference reference = made_reference(n, x);
    const auto known = formats({"mxfp8", "mxfp6-e2m3", "mxfp4"});
    const auto divergence = [&](const Mix& mix) {
        return divergence_of(reference, run_lowered(n, x, mix).y);
    };
    const auto path = greedy_path(layer_sizes(n), divergence, known, true);
    CHECK(path.size() == 6 * 2 + 1);
    CHECK(path.front().mix == uniform_mix(6, *known.front()));
    CHECK(path.back().mix == uniform_mix(6, *known.back()));
    for (std::size_t i = 1; i < path.size(); ++i) {
        CHECK(path[i].point.bits < path[i - 1].point.bits);
        CHECK(path[i].point.divergence == divergence_of(reference, run_lowered(n, x, path[i].mix).y));
        std::size_t changed = 0;
        for (std::size_t l = 0; l < 6; ++l) changed += path[i].mix.weights[l] != path[i - 1].mix.weights[l];
        CHECK(changed == 1);
    }
    // The first step is the cheapest of the six.
    double least = INFINITY;
    for (std::size_t l = 0; l < 6; ++l) {
        Mix mix = uniform_mix(6, *known[0]);
        mix.weights[l] = mix.activations[l] = known[1];
        const double price = (divergence_of(reference, run_lowered(n, x, mix).y) - path[0].point.divergence) /
                             (path[0].point.bits - bits_per_weight(n, mix));
        least = std::min(least, price);
    }
    CHECK((path[1].point.divergence - path[0].point.divergence) / (path[0].point.bits - path[1].point.bits) ==
          doctest::Approx(least));
}

TEST_CASE("divergence, changed answers and sizes of errors of two rows, computed by hand") {
    Matrix<float> p(2, 2), q(2, 2), right(2, 2);
    p.values = {0, 0, 3, 1};
    q.values = {0, std::log(3.0F), 3, 1};
    right.values = {1, 0, 1, 0};
    const Reference reference = reference_of(p, true, right);
    const Score s = score_of(reference, q);
    // Row 1: p = (1/2, 1/2), q = (1/4, 3/4). Row 2 is the same in both.
    CHECK(s.divergence == doctest::Approx((0.5 * std::log(2.0) + 0.5 * std::log(2.0 / 3)) / 2).epsilon(1e-6));
    CHECK(s.changed == 1);
    CHECK(s.accuracy_pct == 50);
    CHECK(s.max_abs == doctest::Approx(std::log(3.0)));
    CHECK(s.mean_abs == doctest::Approx(std::log(3.0) / 4));
    CHECK(s.relative_pct == doctest::Approx(100 * std::log(3.0) / 4));
    CHECK(score_of(reference, p).divergence == 0);
    const Reference values = reference_of(p, false, {});
    CHECK(divergence_of(values, q) == doctest::Approx(std::log(3.0) * std::log(3.0) / 10));
    CHECK(std::isnan(score_of(values, q).accuracy_pct));
    CHECK(margins_of(q)[0] == doctest::Approx(0.5));
}

TEST_CASE("a cascade repeats exactly the rows below tau") {
    const TrainedMlp n = made_network({16, 24, 5});
    const Matrix<float> x = normal(64, 16, 7);
    const Reference reference = reference_of(forward(n, x), true, forward(n, x));
    const auto outputs = [&](const char* id) {
        return run_lowered(n, x, uniform_mix(2, find_low_format(id, "test"))).y;
    };
    const CascadeRun run = cascade_run(outputs("mxfp4"), outputs("e4m3"));
    double before = -1;
    for (const double tau : {0.0, 0.05, 0.2, 0.5, 0.9, 1.1}) {
        const Cascade c = cascade_of(reference, run, tau, 0.25);
        std::size_t repeated = 0;
        Matrix<float> mixed = run.low;
        for (std::size_t r = 0; r < 64; ++r) {
            std::vector<double> e;
            double sum = 0;
            for (const float v : run.low.row(r)) e.push_back(std::exp(static_cast<double>(v)));
            for (const double v : e) sum += v;
            std::ranges::sort(e, std::greater<>());
            if ((e[0] - e[1]) / sum >= tau) continue;
            ++repeated;
            std::ranges::copy(run.high.row(r), mixed.row(r).begin());
        }
        CHECK(c.repeated_pct == doctest::Approx(100.0 * static_cast<double>(repeated) / 64));
        CHECK(c.cost == doctest::Approx(0.25 + c.repeated_pct / 100));
        CHECK(c.divergence == divergence_of(reference, mixed));
        CHECK(c.repeated_pct >= before);
        before = c.repeated_pct;
    }
    CHECK(before == 100);
    CHECK_THROWS_AS(cascade_of(reference_of(forward(n, x), false, {}), run, 0.5), Error);
}
