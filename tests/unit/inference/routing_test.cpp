// What rounding does to the choices of trained experts: the shipped models moe-1 and moe-2, 1,024 held-out tokens each.
#include "core/inference/experts/routing.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "core/base/error.h"
#include "core/files/files.h"
#include "core/inference/experts/groups.h"

using namespace fp8lab;

namespace {

constexpr int kSeeds = 2, kBatches = 2;

RoutingStudy& study(int seed) {
    static std::map<int, RoutingStudy> all;
    const auto known = all.find(seed);
    if (known != all.end()) return known->second;
    TrainOptions options;
    options.model = "moe", options.recipes = "bf16", options.seed = static_cast<std::uint64_t>(seed);
    const TrainSpec spec = make_train_spec(options);
    const auto path = asset("models/moe-" + std::to_string(seed) + ".safetensors");
    return all.try_emplace(seed, spec, load_weights("moe", path, spec), kBatches).first->second;
}

// Of both models.
struct Changes {
    std::vector<double> changed, divergence, kept;
    static double mean(const std::vector<double>& v) {
        return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
    }
    double share_pct() const { return 100 * (1 - mean(kept) / mean(divergence)); }
};
Changes changes(const char* layers, const char* router) {
    Changes out;
    for (int seed = 1; seed <= kSeeds; ++seed) {
        const RoutingChange one = study(seed).change(parse_recipe(routed_recipe(layers, router)));
        out.changed.push_back(one.changed_pct());
        out.divergence.push_back(one.divergence);
        out.kept.push_back(one.divergence_kept);
    }
    return out;
}

std::vector<double> hop(const char* gemm, const char* sent, const char* back) {
    std::vector<double> sum(2);
    for (int seed = 1; seed <= kSeeds; ++seed) {
        const auto one =
            study(seed).hop_error_pct(parse_recipe(gemm), parse_recipe(sent), parse_recipe(back));
        for (std::size_t b = 0; b < sum.size(); ++b) sum[b] += one[b] / kSeeds;
    }
    return sum;
}

bool between(double value, double low, double high) { return value >= low && value <= high; }

}  // namespace

TEST_CASE("a router in FP32 behind MXFP8 layers moves as many tokens as one in E4M3 behind BF16 layers") {
    const Changes bf16 = changes("bf16", "bf16"), e4m3 = changes("bf16", "current"),
                  mxfp8 = changes("mxfp8", "fp32"), both = changes("mxfp8", "mxfp8"),
                  nvfp4 = changes("nvfp4", "fp32");
    CHECK(between(Changes::mean(bf16.changed), 0.02, 0.7));
    CHECK(between(Changes::mean(e4m3.changed), 2.8, 4.8));
    CHECK(between(Changes::mean(mxfp8.changed), 3, 5));
    CHECK(between(Changes::mean(both.changed), 4.6, 6.8));
    CHECK(between(Changes::mean(nvfp4.changed), 11, 15));
    for (std::size_t i = 0; i < kSeeds; ++i) {
        CHECK(bf16.changed[i] < e4m3.changed[i] / 5);
        CHECK(mxfp8.changed[i] < both.changed[i]);
    }
    // How much of the divergence changed choices cause: nearly all of a narrow router's, less than half of four bits'.
    CHECK(e4m3.share_pct() > 75);
    CHECK(between(mxfp8.share_pct(), 25, 70));
    CHECK(nvfp4.share_pct() < 35);
}

TEST_CASE("the tokens that a narrow router moves are close calls") {
    RoutingStudy& one = study(1);
    CHECK(one.tokens() == 1024);
    const RoutingChange change = one.change(parse_recipe("bf16:router=current"));
    const std::vector<float>& margins = one.margins(0);
    REQUIRE(change.changed_blocks[0].size() == margins.size());
    for (std::size_t t = 0; t < margins.size(); ++t)
        if (change.changed_blocks[0][t]) CHECK(margins[t] < 1.0F / 32);
    CHECK(between(one.margin_below_pct(0.01), 15, 30));
    const double share = 100 * static_cast<double>(std::ranges::count(change.changed_blocks[0], true)) / 1024;
    CHECK(share == doctest::Approx(change.changed_pct_blocks[0]));
}

TEST_CASE("the reference against itself has no divergence and no changed token") {
    const RoutingChange none = study(2).change(parse_recipe("bf16"));
    CHECK(none.changed_pct() == 0);
    CHECK(none.divergence == 0);
    CHECK(none.divergence_kept == 0);
    const std::vector<int> rows = study(2).rows(1, 512);
    CHECK(std::accumulate(rows.begin(), rows.end(), 0) == 1024);
    for (const double error :
         study(2).hop_error_pct(parse_recipe("bf16"), parse_recipe("bf16"), parse_recipe("bf16")))
        CHECK(error == 0);
}

TEST_CASE("a hop in the GEMM's own cast adds nothing, one with scales of its own rounds twice") {
    const std::vector<double> plain = hop("mxfp8", "bf16", "bf16"), same = hop("mxfp8", "mxfp8", "bf16"),
                              twice = hop("mxfp8", "block128:pow2=0", "bf16");
    CHECK(same == plain);
    CHECK(plain[0] == doctest::Approx(2.5).epsilon(0.12));
    CHECK(plain[1] == doctest::Approx(3.7).epsilon(0.12));
    for (std::size_t b = 0; b < 2; ++b) CHECK(between(twice[b] - plain[b], 0.3, 1.3));
    const std::vector<double> back = hop("bf16", "bf16", "block128"), out = hop("bf16", "block128", "bf16");
    for (std::size_t b = 0; b < 2; ++b) CHECK(between(back[b], 2.3, 2.9));
    CHECK(out[0] < back[0]);
}

TEST_CASE("another model has no experts to study") {
    TrainOptions options;
    options.model = "transformer", options.recipes = "bf16";
    CHECK_THROWS_AS(RoutingStudy(make_train_spec(options), {}), Error);
}

TEST_CASE("few rows are padded most: about a / (2 m + a) of the rows are zeros, m the mean") {
    for (const auto& [experts, active, tokens, pad] :
         {std::array{256, 8, 4096, 128}, {256, 8, 16384, 128}, {256, 8, 4096, 16}, {64, 6, 4096, 128}}) {
        CAPTURE(tokens);
        double zeros = 0;
        for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
            const std::vector<int> rows = draw_groups({experts, active, tokens, 0, seed});
            CHECK(std::accumulate(rows.begin(), rows.end(), 0) == tokens * active);
            zeros += group_shape(rows, pad).zeros_pct / 5;
        }
        const double mean = static_cast<double>(tokens) * active / experts;
        CHECK(zeros == doctest::Approx(100.0 * pad / (2 * mean + pad)).epsilon(0.12));
    }
}

TEST_CASE("a skew makes one expert busy, and hardly more zeros") {
    double zeros[2] = {}, largest[2] = {};
    for (const int skew : {0, 1})
        for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
            const GroupShape shape =
                group_shape(draw_groups({256, 8, 4096, static_cast<double>(skew), seed}), 128);
            zeros[skew] += shape.zeros_pct / 5, largest[skew] += shape.largest_over_mean / 5;
        }
    CHECK(largest[0] < 1.5);
    CHECK(largest[1] > 7);
    CHECK(zeros[1] - zeros[0] < 6);
}

TEST_CASE("rows that are padded, and experts without any") {
    const GroupShape shape = group_shape({0, 1, 16, 17}, 16);
    CHECK(shape.zeros_pct == doctest::Approx(100.0 * (64 - 34) / 64));
    CHECK(shape.empty_pct == 25);
    CHECK(shape.largest_over_mean == doctest::Approx(2));
    CHECK(group_shape({5, 3}, 1).zeros_pct == 0);
    CHECK(group_shape({0, 0}, 16).zeros_pct == 0);
}
