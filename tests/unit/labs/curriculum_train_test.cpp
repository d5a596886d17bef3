// curriculum.md 1.7, curriculum.md 1.8 and curriculum.md 3.8, in trainings of their own. The reference's
// numbers are of another teacher's draw, and of products that were not rounded to BF16; each test says them
// and bounds ours. Sums in another order (another BLAS) move a gap by a few tenths of a percent.
#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/trainer/cpu_trainer.h"
#include "tests/all.h"

using namespace fp8lab;

namespace {

struct Arm {
    double tail = 0;                 // mean of the last 100 losses
    double gap_pct = 0;              // against the first arm
    double worst_underflow_pct = 0;  // of the gradients dy, each its mean over the run
    std::optional<NonFinite> stopped;
    std::vector<double> losses;
};

// Arms of one training of the teacher under the cosine schedule, in order.
std::vector<Arm> train(const std::string& recipes, std::uint64_t seed,
                       const std::function<void(TrainOptions&)>& change = {}, int poison_at = -1) {
    TrainOptions options;
    options.recipes = recipes, options.seed = seed, options.schedule = "cosine";
    if (change) change(options);
    auto trainer = make_cpu_trainer(make_train_spec(options));
    const int before = std::max(poison_at, 0);
    trainer->step(before);
    if (poison_at >= 0) trainer->set(PoisonBatch{1000});
    trainer->step(trainer->spec().steps - before);
    std::vector<Arm> out;
    for (const ArmSnapshot& arm : trainer->snapshot().arms) {
        Arm& made = out.emplace_back();
        made.stopped = arm.stopped;
        for (const StepRecord& record : arm.records) made.losses.push_back(record.loss);
        const std::size_t n = made.losses.size(), tail = std::min<std::size_t>(n, 100);
        for (std::size_t i = n - tail; i < n; ++i) made.tail += made.losses[i] / static_cast<double>(tail);
        for (std::size_t dy = 2; n > 0 && dy < arm.records.front().tensors.size(); dy += 3) {
            double lost = 0;
            for (const StepRecord& record : arm.records)
                lost += static_cast<double>(record.tensors[dy].underflow_pct) / static_cast<double>(n);
            made.worst_underflow_pct = std::max(made.worst_underflow_pct, lost);
        }
        made.gap_pct = 100 * (made.tail / out.front().tail - 1);
    }
    return out;
}

// Gaps in percent against BF16, of three seeds at most, for each of the recipes.
std::vector<std::vector<double>> gaps(const std::string& recipes) {
    std::vector<std::vector<double>> out;
    for (const std::uint64_t seed : tested_seeds(3)) {
        const auto arms = train("bf16," + recipes, seed);
        out.resize(arms.size() - 1);
        for (std::size_t i = 1; i < arms.size(); ++i) out[i - 1].push_back(arms[i].gap_pct);
    }
    return out;
}

void say(const std::string& recipe, const std::vector<double>& gap) {
    MESSAGE(recipe << ": gaps " << fmt::format("{:.3f}", fmt::join(gap, ", ")) << " %");
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

}  // namespace

TEST_CASE("L8, reference: BF16 ends where FP32 does") {
    // 4.08 / 4.62 / 5.72 and 4.08 / 4.62 / 5.73, in 1e-2: at most 0.2 % apart. The level is the teacher's.
    for (const std::uint64_t seed : tested_seeds(3)) {
        const auto arms = train("fp32,bf16", seed);
        MESSAGE("FP32 " << arms[0].tail << ", BF16 " << arms[1].gap_pct << " %");
        CHECK(std::fabs(arms[1].gap_pct) < 0.3);
        CHECK(arms[0].tail > 0.03);
        CHECK(arms[0].tail < 0.06);
    }
}

TEST_CASE("curriculum.md 1.8: FP8 costs a few percent, neither nothing nor 5") {
    // HYBRID, current or delayed, and MXFP8: 4.19 / 4.71 / 5.86, which is 2.7, 1.9, 2.3 %; MXFP6-E2M3 the
    // same.
    const auto found = gaps("delayed,current,mxfp8,mxfp6-e2m3");
    for (std::size_t i = 0; i < found.size(); ++i) {
        say(std::array{"delayed", "current", "mxfp8", "mxfp6-e2m3"}.at(i), found[i]);
        for (const double gap : found[i]) {
            CHECK(gap > 1);
            CHECK(gap < 5);
        }
    }
}

TEST_CASE("L8, reference: two mantissa bits cost three times as much") {
    // E5M2 everywhere 4.41 / 4.96 / 6.17: 8.1, 7.4, 7.7 %. MXFP6-E3M2 4.58 / 4.95 / 6.17: 12.3, 7.1, 7.7 %.
    const auto found = gaps("delayed:fwd=e5m2,mxfp6-e3m2");
    for (std::size_t i = 0; i < found.size(); ++i) {
        say(std::array{"e5m2", "mxfp6-e3m2"}.at(i), found[i]);
        for (const double gap : found[i]) {
            CHECK(gap > 6.5);
            CHECK(gap < 13.5);
        }
    }
}

TEST_CASE("L8, reference: four bits cost a third to a half, NVFP4 less than MXFP4") {
    // NVFP4 5.33 / 5.79 / 7.53: 31, 25, 31 %. MXFP4 5.64 / 6.21 / 7.60: 38, 34, 33 %. Ours are higher by 10
    // to 15.
    const auto found = gaps("nvfp4,mxfp4");
    say("nvfp4", found[0]), say("mxfp4", found[1]);
    for (std::size_t seed = 0; seed < found[0].size(); ++seed) {
        CHECK(found[0].at(seed) > 25);
        CHECK(found[0].at(seed) < found[1].at(seed));
        CHECK(found[1].at(seed) < 55);
    }
}

TEST_CASE("L8: the options of four bits") {
    // No reference. The loss ranks 4or6 below 6, and wide outer layers far below; nvfp4-te it does not rank.
    const auto found = gaps("nvfp4,nvfp4-te,nvfp4:target=4or6,nvfp4-te:wide=first+last");
    say("nvfp4", found[0]), say("nvfp4-te", found[1]), say("4or6", found[2]), say("wide", found[3]);
    for (std::size_t seed = 0; seed < found[0].size(); ++seed) {
        CHECK(found[1].at(seed) > 25);
        CHECK(found[1].at(seed) < 55);
        CHECK(found[2].at(seed) < found[0].at(seed));
        CHECK(found[3].at(seed) < 15);
    }
}

TEST_CASE("L8, reference and exercise 3: E4M3 without a scale ends far off, and one control repairs it") {
    // 8.7 / 9.1 / 9.0 against 4.08 / 4.62 / 5.73: 2.1, 2.0, 1.6 times. A loss scale of 4096 repaired it
    // there; there is none here, and E5M2 for the gradients or a scale of their own does.
    const auto found = gaps("unscaled:fwd=e4m3:bwd=e4m3,unscaled:fwd=e4m3,delayed:fwd=e4m3:bwd=e4m3");
    say("no scale", found[0]), say("bwd=e5m2", found[1]), say("delayed", found[2]);
    for (std::size_t seed = 0; seed < found[0].size(); ++seed) {
        CHECK(found[0].at(seed) > 50);
        CHECK(found[0].at(seed) < 130);
        CHECK(found[1].at(seed) < 5);
        CHECK(found[2].at(seed) < 5);
    }
}

TEST_CASE("L8, reference and exercise 4: without master weights nearest ruins the training, dice save it") {
    // Nearest 34 / 30 / 43: 8.3, 6.5, 7.5 times BF16. Stochastic 4.47 / 4.88 / 6.05: 9.6, 5.6, 5.6 % above; ours 11
    // to 16 %, so that the exercise asks for 20 % where the reference had 15.
    const auto found = gaps("delayed:master=none,delayed:master=none:round_update=stochastic");
    say("nearest", found[0]), say("dice", found[1]);
    for (std::size_t seed = 0; seed < found[0].size(); ++seed) {
        CHECK(found[0].at(seed) > 500);
        CHECK(found[0].at(seed) < 1300);
        CHECK(found[1].at(seed) > 5);
        CHECK(found[1].at(seed) < 20);
    }
}

TEST_CASE(
    "L8, reference: casts that write NaN end delayed scaling in the second step, and margin 1 saves it") {
    for (const std::uint64_t seed : tested_seeds(3)) {
        const auto arms = train("delayed:overflow=nonsaturate,delayed:overflow=nonsaturate:margin=1", seed,
                                [](TrainOptions& options) { options.steps = 400; });
        REQUIRE(arms[0].stopped);
        CHECK(arms[0].stopped->step == 1);  // 0-based: its step 2
        CHECK_FALSE(arms[1].stopped);
        CHECK(arms[1].losses.back() < 0.5 * arms[1].losses.front());
    }
}

TEST_CASE(
    "curriculum.md 1.7 and exercise 2: with scale 1 a third of dy underflows, and the loss hardly tells") {
    // 12 seeds: unscaled below delayed in 9, median gaps 1.96 and 2.62 %, 31 to 36 % of dy1 lost.
    std::vector<double> unscaled, delayed;
    int below = 0;
    for (const std::uint64_t seed : tested_seeds(12)) {
        const auto arms = train("bf16,delayed,unscaled", seed);
        delayed.push_back(arms[1].gap_pct), unscaled.push_back(arms[2].gap_pct);
        below += arms[2].tail < arms[1].tail ? 1 : 0;
        CHECK(arms[2].worst_underflow_pct > 30);
        CHECK(arms[2].worst_underflow_pct < 37);
        CHECK(arms[1].worst_underflow_pct < 0.1);
        CHECK(std::fabs(arms[2].gap_pct) < 5);
        MESSAGE("seed " << seed << ": delayed " << arms[1].gap_pct << " %, unscaled " << arms[2].gap_pct
                        << " %, dy " << arms[2].worst_underflow_pct << " %");
    }
    MESSAGE("unscaled below delayed in " << below << "; medians " << median(delayed) << " and "
                                         << median(unscaled));
    if (!tests_all()) return;  // the rest is about the 12 seeds together
    CHECK(below >= 6);
    CHECK(below <= 11);
    CHECK(median(delayed) == doctest::Approx(2.62).epsilon(0.25));
    CHECK(median(unscaled) > 1.5);
    CHECK(median(unscaled) < median(delayed) + 0.3);
}

TEST_CASE("L8, exercise 2: SGD loses a third of dy as well") {
    // 33 to 35 % with Adam, 38 % with SGD there; here 33 to 35 % with both.
    for (const std::uint64_t seed : tested_seeds(3)) {
        const auto arms = train("bf16,unscaled", seed,
                                [](TrainOptions& options) { options.optimizer = "sgd", options.lr = 0.1; });
        MESSAGE("SGD: dy " << arms[1].worst_underflow_pct << " %, gap " << arms[1].gap_pct << " %");
        CHECK(arms[1].worst_underflow_pct > 31);
        CHECK(arms[1].worst_underflow_pct < 38);
        CHECK(std::fabs(arms[1].gap_pct) < 5);
    }
}

TEST_CASE("L8, caution: at a learning rate of 0.1 the gap is anything, so the preset fixes its own") {
    // Both arms at 1 to 2e-2, gaps -1, +21, +13 %.
    for (const std::uint64_t seed : tested_seeds(3)) {
        const auto arms =
            train("bf16,delayed,unscaled", seed, [](TrainOptions& options) { options.lr = 0.1; });
        MESSAGE("lr 0.1: BF16 " << arms[0].tail << ", delayed " << arms[1].gap_pct << " %, unscaled "
                                << arms[2].gap_pct << " %");
        for (const Arm& arm : arms) {
            CHECK(arm.tail > 0.008);
            CHECK(arm.tail < 0.022);
        }
        CHECK(std::max(arms[1].gap_pct, arms[2].gap_pct) > 5);
    }
}

// "Delayed scaling's saturation clips a x1000 poison batch so FP8 recovers faster than BF16 (spiral, 10 steps
// later: 0.10 vs 0.44; 1 seed)". Half of it: the poisoned step itself is clipped. The history then keeps the
// batch's amax for its 16 steps, x1 falls out of the window's lower end, and delayed scaling is the one that
// recovers later. SGD at 0.5 has one seed in 24 with figures like theirs.
TEST_CASE("L8, aha: a poisoned batch is clipped by delayed scaling, which then recovers later than BF16") {
    constexpr std::size_t kAt = 1200;
    int clipped = 0, later = 0;
    for (const std::uint64_t seed : tested_seeds(6)) {
        const auto arms = train(
            "bf16,delayed", seed,
            [](TrainOptions& options) {
                options.task = "spiral", options.schedule = "constant", options.steps = kAt + 20;
            },
            kAt);
        const auto &bf16 = arms[0].losses, &fp8 = arms[1].losses;
        MESSAGE("before " << bf16[kAt - 1] << ", in the step BF16 " << bf16[kAt] << ", FP8 " << fp8[kAt]
                          << ", after 1: " << bf16[kAt + 1] << ", " << fp8[kAt + 1]
                          << ", after 10: " << bf16[kAt + 10] << ", " << fp8[kAt + 10]);
        clipped += fp8[kAt] < bf16[kAt] ? 1 : 0;
        later += fp8[kAt + 10] > bf16[kAt + 10] ? 1 : 0;
        CHECK(fp8[kAt + 1] > bf16[kAt + 1]);
    }
    CHECK(clipped == static_cast<int>(tested_seeds(6).size()));
    if (tests_all()) CHECK(later >= 4);
}
