// curriculum.md 2.1, curriculum.md 2.2 and curriculum.md 3.7. Each test says the reference's number and
// bounds ours. Stalls, the notebook's stochastic rounding and the H200's accumulator are in adding_test.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "labs/adding/model.h"
#include "tests/unit/labs/made.h"

using namespace fp8lab;
using namespace fp8lab::adding;

namespace {

using Made = test::MadeOf<AddingLab>;

}  // namespace

TEST_CASE("curriculum.md 2.1: sums of ones stall at 2^(m + 1): 16, 8, 256, 2048") {
    const Made ones{"addend=1", "terms=65536"};
    CHECK(ones("e4m3.sum") == 16);
    CHECK(ones("e5m2.sum") == 8);
    CHECK(ones("bf16.sum") == 256);
    CHECK(ones("fp16.sum") == 2048);
}

TEST_CASE("curriculum.md 2.1: 4096 times 0.01 is 0.25 in E4M3, 4 in BF16, 32 in FP16, 40.96 in truth") {
    const Made sums{"addend=0.01", "terms=4096"};
    CHECK(sums("e4m3.sum") == 0.25);
    CHECK(sums("bf16.sum") == 4);
    CHECK(sums("fp16.sum") == 32);
    CHECK(sums("exact") == doctest::Approx(40.96).epsilon(1e-9));
    // Exercise 2 asks for 1 %: of the five accumulators FP32 alone gets there by rounding to nearest.
    for (const char* format : {"e4m3", "e5m2", "bf16", "fp16"})
        CHECK(std::fabs(sums(std::string(format) + ".error_pct")) > 1);
    CHECK(std::fabs(sums("fp32.error_pct")) < 0.01);
    // "Destroys gradients" is overstated for short sums: of 16 nearly all is left.
    CHECK(std::fabs(Made{"addend=0.01", "terms=16"}("e4m3.error_pct")) < 3);
}

TEST_CASE("curriculum.md 2.2 and exercise 3: stochastic rounding costs a tensor 3 dB, 28.5 against 31.5") {
    for (const char* seed : {"seed=1", "seed=2", "seed=3"}) {
        const Made dice{"experiment=dice", "draws=20000", seed};
        CAPTURE(seed);
        CHECK(dice("nearest.tensor_sqnr_db") == doctest::Approx(31.5).epsilon(0.005));
        CHECK(dice("stochastic.tensor_sqnr_db") == doctest::Approx(28.5).epsilon(0.005));
        CHECK(std::fabs(dice("stochastic.mean") - 17.3) <= 3 * dice("stochastic.standard_error"));
    }
}

TEST_CASE("curriculum.md 2.2 and exercise 5: 71 % of the notebook's results are no E4M3 values, then none") {
    const Made dice{"experiment=dice"};
    CHECK(dice("integer.tensor_off_grid_pct") == doctest::Approx(71).epsilon(0.01));
    CHECK(dice("stochastic.tensor_off_grid_pct") == 0);
}

TEST_CASE("curriculum.md 2.1 and exercise 4: 14 bits lose 6.6 % of 4096 products, and 128 is the interval") {
    // A leading bit and 13 of fraction. For a target of 0.1 % the checker's sweep, done here by hand.
    double largest = 0;
    for (int interval = 16; interval <= 4096; interval *= 2) {
        const Made dot{"experiment=dot", "interval=" + std::to_string(interval)};
        if (dot("promoted.rel_rms") <= 0.001) largest = interval;
        if (interval == 4096) CHECK(dot("promoted.rel_rms") == dot("narrow.rel_rms"));
        CHECK(dot("narrow.rel_rms") == doctest::Approx(0.066).epsilon(0.01));
    }
    CHECK(largest == 128);
}

TEST_CASE("aha: stochastic rounding makes each number worse and the sum right") {
    const Made cast{"experiment=dice"};
    CHECK(cast("stochastic.tensor_sqnr_db") < cast("nearest.tensor_sqnr_db") - 2.9);
    double mean = 0;  // of 64 sums in E4M3: one of them alone is off by a quarter
    for (std::uint64_t seed = 1; seed <= 64; ++seed)
        mean += running_sum(find_format("e4m3"), Method::stochastic, 0, 0.01F, 4096, seed).back() / 64;
    CHECK(mean == doctest::Approx(40.96).epsilon(0.1));
    CHECK(running_sum(find_format("e4m3"), Method::nearest, 0, 0.01F, 4096, 1).back() == 0.25);
}
