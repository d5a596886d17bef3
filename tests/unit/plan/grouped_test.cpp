// What the recordings say of grouped GEMMs: which product FP8 does not make faster where each group has few rows.
#include "core/plan/grouped.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/backend/recording.h"
#include "core/base/error.h"

using namespace fp8lab;
using namespace fp8lab::plan;

namespace {

GroupedGemms recorded(const std::string& id) {
    const Recording* found = shipped()->find(id);
    REQUIRE(found);
    REQUIRE(found->grid);
    return GroupedGemms(*found->grid);
}

bool is(double value, double expected) {
    return std::fabs(value - expected) <= 0.005;
}  // to its two decimals

}  // namespace

TEST_CASE("speed-ups of grouped GEMMs: wgrad of 64 groups gains nothing from FP8") {
    const GroupedGemms h200 = recorded("h200"), h100 = recorded("h100");
    CHECK(h200.groups() == std::vector<int>{1, 4, 16, 64});
    CHECK(is(h200.speedup(1, "fprop"), 1.94));
    CHECK(is(h200.speedup(1, "dgrad"), 1.77));
    CHECK(is(h200.speedup(1, "wgrad"), 1.79));
    CHECK(is(h200.speedup(64, "fprop"), 1.93));
    CHECK(is(h200.speedup(64, "dgrad"), 1.90));
    CHECK(is(h200.speedup(64, "wgrad"), 1.07));
    CHECK(is(h100.speedup(64, "fprop"), 1.93));
    CHECK(is(h100.speedup(64, "dgrad"), 1.83));
    CHECK(is(h100.speedup(64, "wgrad"), 1.06));
    CHECK(std::isnan(h200.speedup(2, "fprop")));
}

TEST_CASE("the bound of grouped GEMMs: its bandwidth, its ridge, and how far recorded times are from it") {
    const GroupedGemms h200 = recorded("h200"), h100 = recorded("h100");
    CHECK(is(h200.tb_s(), 3.92));
    CHECK(is(h100.tb_s(), 2.87));
    // Rate and bytes of the weights both double with FP8: the ridge of fprop stays. wgrad writes FP32 in either format.
    CHECK(std::lround(h200.ridge_rows("fprop", "bf16")) == 217);
    CHECK(std::lround(h200.ridge_rows("fprop", "fp8")) == 221);
    CHECK(std::lround(h200.ridge_rows("wgrad", "bf16")) == 384);
    CHECK(std::lround(h200.ridge_rows("wgrad", "fp8")) == 679);
    double least = 0, most = 0;
    for (const GroupedGemms& gpu : {h200, h100})
        for (const GroupedTime& time : gpu.times()) {
            least = std::min(least, time.off_pct());
            most = std::max(most, time.off_pct());
        }
    CAPTURE(least);
    CAPTURE(most);
    CHECK(std::lround(least) == -4);
    CHECK(std::lround(most) == 43);
}

TEST_CASE("a recording without groups is refused") {
    CHECK_THROWS_WITH_AS(GroupedGemms(GemmGrid{}), doctest::Contains("has no grouped GEMMs"), Error);
}
