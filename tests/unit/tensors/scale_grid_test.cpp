#include "core/tensors/scales/scale_grid.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace fp8lab;

namespace {

using Sizes = std::vector<std::size_t>;

// The extents of the only grid; empty: none, or several.
Sizes extents(const Sizes& codes, const Sizes& scales, const Sizes& blocks = {}) {
    const auto grids = scale_grids(codes, scales, blocks);
    return grids.size() == 1 ? grids.front().extents : Sizes{};
}

}  // namespace

TEST_CASE("the extents follow from the shapes, partial blocks included") {
    CHECK(extents({4, 6}, {}) == Sizes{4, 6});
    CHECK(extents({4, 6}, {1, 1}) == Sizes{4, 6});
    CHECK(extents({4, 6}, {4}) == Sizes{1, 6});
    CHECK(extents({4, 6}, {4, 1}) == Sizes{1, 6});
    CHECK(extents({4, 6}, {1, 6}) == Sizes{4, 1});
    CHECK(extents({300, 129}, {3, 2}) == Sizes{128, 128});
    CHECK(extents({300, 128}, {3, 1}) == Sizes{128, 128});
    CHECK(extents({3, 64}, {3, 4}) == Sizes{1, 16});
    CHECK(extents({3, 65}, {3, 3}) == Sizes{1, 32});
    CHECK(extents({8, 300, 256}, {8, 3, 2}) == Sizes{1, 128, 128});
    CHECK(extents({8, 30, 20}, {8, 30}) == Sizes{1, 1, 20});
    CHECK(extents({300, 256}, {3, 1, 2, 1}) == Sizes{128, 128});  // ModelOpt's FP8_PB_WO
    CHECK(extents({5, 2, 3, 3}, {5, 1, 1, 1}) == Sizes{1, 2, 3, 3});
    CHECK(extents({64}, {2}) == Sizes{32});
}

TEST_CASE("what does not fit has no grid, and what fits twice has two") {
    CHECK(scale_grids(Sizes{4, 6}, Sizes{6, 4}).empty());
    CHECK(scale_grids(Sizes{4, 6}, Sizes{4, 6, 2}).empty());
    CHECK(scale_grids(Sizes{384, 256}, Sizes{3}).empty());  // q, k and v, not three blocks of 128 rows
    CHECK(scale_grids(Sizes{4, 0}, Sizes{4, 2}).empty());
    CHECK(scale_grids(Sizes{}, Sizes{2}).empty());
    const Sizes more = {96};
    CHECK(scale_grids(Sizes{150, 4}, Sizes{2, 1}).size() == 1);
    CHECK(scale_grids(Sizes{150, 4}, Sizes{2, 1}, more).size() == 2);
    CHECK(scale_grids(Sizes{300, 4}, Sizes{3, 1}, more).size() == 1);
    constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
    CHECK(scale_grids(Sizes{kMost, kMost}, Sizes{kMost, 3}).empty());
}

TEST_CASE("a fused matrix has one scale a part") {
    const ScaleGrid grid = fused_grid(Sizes{7, 2}, Sizes{4, 1, 2});
    Sizes rows;
    for (std::size_t r = 0; r < 7; ++r) rows.push_back(grid.row_of(r));
    CHECK(rows == Sizes{0, 0, 0, 0, 1, 2, 2});
    CHECK(grid.words() == "one scale per part");
}

TEST_CASE("values are multiplied by their scale and then by the global one, which may divide") {
    const ScaleGrid grid = scale_grids(Sizes{2, 32}, Sizes{2, 2}).front();
    std::vector<float> rows(64, 3);
    const std::vector<float> scales = {2, 4, 8, 16};
    CHECK(apply_scales(grid, 0, rows, scales, 0, GlobalScale{4, true}) == 0);
    CHECK(rows[15] == 1.5F);
    CHECK(rows[16] == 3);
    CHECK(rows[32] == 6);
    CHECK(rows[63] == 12);
    std::vector<float> last(32, 1);
    apply_scales(grid, 1, last, std::span(scales).subspan(2), 1, GlobalScale{0.5F, false});
    CHECK(last[0] == 4);
    CHECK(last[31] == 8);
}

TEST_CASE("what becomes infinite is counted where code and scale are finite") {
    const ScaleGrid rows = scale_grids(Sizes{4, 1}, Sizes{4}).front();
    std::vector<float> values = {INFINITY, 448, 448, 1};
    const std::vector<float> scales = {1, 0x1p127F, INFINITY, 2};
    CHECK(apply_scales(rows, 0, values, scales, 0, {}) == 1);
    CHECK(values == std::vector<float>{INFINITY, INFINITY, INFINITY, 2});
    std::vector<float> by_zero = {1, 2, 3, 0};
    CHECK(apply_scales(rows, 0, by_zero, std::vector<float>(4, 1), 0, GlobalScale{0, true}) == 0);
    CHECK(std::isinf(by_zero[0]));
}

TEST_CASE("the health of scales in words") {
    ScaleHealth health;
    health.add(std::vector<float>{1, NAN, NAN, -INFINITY, 0, 0x1p-127F, -3});
    CHECK(health.scales == 7);
    CHECK(health.words() == "2 NaN, 1 Inf, 1 zero, 1 subnormal, 2 negative");
    CHECK_FALSE(health.is_usual());
    CHECK(ScaleHealth{.scales = 3}.words().empty());
}
