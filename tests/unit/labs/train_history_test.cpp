// The series that L8 keeps of a training: joined from snapshots, smoothed, compared.
#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.h"
#include "labs/train/model.h"
#include "tests/unit/labs/train_lab.h"

using namespace fp8lab;
using namespace fp8lab::train;
using test::snapshot_of;

namespace {

ModelPlan one_layer() {
    const int sizes[] = {4, 1};
    return mlp_plan(sizes);
}

}  // namespace

TEST_CASE("the tail mean is the mean of the last values, or of all while there are fewer") {
    const std::vector<double> values = {1, 2, 3, 10};
    CHECK(tail_mean(values, 2) == 6.5);
    CHECK(tail_mean(values, 4) == 4);
    CHECK(tail_mean(values, 100) == 4);
    CHECK(std::isnan(tail_mean({}, 3)));
}

TEST_CASE("an array handed out keeps what it showed while the series grows") {
    Growing series;
    series.push(1);
    const Data before = series.data();
    series.push(2);
    CHECK(*before == std::vector<double>{1});
    CHECK(*series.data() == std::vector<double>{1, 2});
    const auto* memory = series.data().get();
    series.push(3);  // the array has no other owner now: no copy
    CHECK(series.data().get() == memory);
}

TEST_CASE("an envelope keeps every extreme in at most 128 stretches") {
    Envelope envelope;
    for (int i = 0; i < 100000; ++i) {
        envelope.push(i == 54321 ? 1e9 : i == 777 ? 1e-9 : i % 1000 == 0 ? std::nan("") : 2.0);
        REQUIRE(envelope.stretches().size() <= Envelope::kMost);
    }
    CHECK(envelope.stretches().size() > Envelope::kMost / 2);
    int spikes = 0, dips = 0;
    for (const auto& stretch : envelope.stretches()) {
        spikes += stretch.hi == 1e9 ? 1 : 0;
        dips += stretch.lo == 1e-9 ? 1 : 0;
        CHECK(stretch.lo <= stretch.hi);  // no stretch of NaN alone
    }
    CHECK(spikes == 1);
    CHECK(dips == 1);
    Envelope single;
    single.push(std::nan(""));
    CHECK(std::isnan(single.stretches()[0].lo));
    CHECK(envelope.stretches()[2].lo == 2);
}

TEST_CASE("percentages carry three digits and their sign") {
    CHECK(signed_percent(3.9) == "+3.90 %");
    CHECK(signed_percent(-12.34) == "\u221212.3 %");
    CHECK(signed_percent(1097.2) == "+1097 %");
    CHECK(signed_percent(9.999) == "+10.0 %");
    CHECK(signed_percent(std::nan("")) == "NaN");
}

TEST_CASE("deltas join without gap or repeat, and a gap is refused") {
    History history;
    history.append(snapshot_of(0, {{1, 2}, {3, 4}}), one_layer());
    history.append(snapshot_of(2, {{5}, {6}}), one_layer());
    CHECK(*history.arms()[0].loss.data() == std::vector<double>{1, 2, 5});
    CHECK(*history.arms()[1].step.data() == std::vector<double>{0, 1, 2});
    CHECK(history.steps() == 3);
    CHECK_THROWS_AS(history.append(snapshot_of(2, {{5}, {6}}), one_layer()), Error);
    CHECK_THROWS_AS(history.append(snapshot_of(7, {{5}, {6}}), one_layer()), Error);
}

TEST_CASE("the gap compares the means of the last 100 steps, the curve is the mean of the last 50") {
    std::vector<double> a, b;
    for (int i = 0; i < 150; ++i) {
        a.push_back(i < 50 ? 7 : 2);                  // the first 50 steps have left both tails
        b.push_back(i < 50 ? 9 : i < 100 ? 2 : 2.2);  // tail: half 2, half 2.2
    }
    History history;
    history.append(snapshot_of(0, {a, b}), one_layer());
    CHECK(history.arms()[0].tail_loss() == doctest::Approx(2));
    CHECK(history.arms()[1].tail_loss() == doctest::Approx(2.1));
    CHECK(gap_pct(history, 1) == doctest::Approx(5));  // 100 (2.1 / 2 - 1)
    CHECK(history.arms()[0].mean.size() == 150);
    CHECK(history.arms()[0].mean.values()[0] == 7);
    // What comes moves no mean of a step before it.
    CHECK(history.arms()[0].mean.values()[49] == 7);
    CHECK(history.arms()[0].mean.values()[50] == doctest::Approx((49 * 7 + 2) / 50.0));
    CHECK(history.arms()[0].mean.values()[74] == doctest::Approx(4.5));  // 25 of 7, 25 of 2
    CHECK(history.arms()[0].mean.values()[99] == 2);
    CHECK(history.arms()[1].mean.last() == doctest::Approx(2.2));
    CHECK(history.arms()[1].gap_pct.values()[0] == doctest::Approx(100 * (9.0 / 7 - 1)));
    CHECK(std::isnan(gap_pct(history, 2)));
}

TEST_CASE("the smoothed curve does not depend on how the steps were cut into snapshots") {
    std::vector<double> losses;
    for (int i = 0; i < 120; ++i) losses.push_back(1.0 / (i + 1));
    History whole, pieces;
    whole.append(snapshot_of(0, {losses}), one_layer());
    for (int from = 0; from < 120; from += 8) {
        pieces.append(snapshot_of(from, {{losses.begin() + from, losses.begin() + from + 8}}), one_layer());
    }
    CHECK(*pieces.arms()[0].mean.data() == *whole.arms()[0].mean.data());
}

TEST_CASE("a curve is labelled with its own last value, also before 100 steps") {
    History history;
    history.append(snapshot_of(0, {{8, 4}, {8, 2}}), one_layer());
    TrainSpec spec;
    spec.arms = {parse_recipe("bf16"), parse_recipe("delayed")};
    const auto figures = train::figures({history, spec, {}, {}});
    std::vector<std::string> labels;
    for (const Series& series : figures[0].series) {
        if (!series.style.end_label.empty()) labels.push_back(series.style.end_label);
    }
    CHECK(labels == std::vector<std::string>{"FP8 5.00", "BF16 6.00"});
}
