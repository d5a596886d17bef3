// The gated activation, the scales of its channels, the loss of tokens, and the exponential under all of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/nn/ops/exponential.h"
#include "core/nn/ops/swiglu.h"
#include "core/nn/ops/token_loss.h"
#include "tests/unit/nn/ops_made.h"

using namespace fp8lab;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity(),
                kNan = std::numeric_limits<float>::quiet_NaN();

// The gate and up of one element -> a.
float gated(GatedActivation kind, float gate, float up) {
    Matrix<float> gate_up(1, 2), a;
    gate_up.values = {gate, up};
    gated_activation(kind, gate_up, a);
    return a.values[0];
}

}  // namespace

TEST_CASE("the exponential's error is below its bound from the smallest exponent to the largest") {
    double worst = 0;
    const auto check = [&](float x) {
        const double exact = std::exp(static_cast<double>(x));
        worst = std::max(worst, std::abs(static_cast<double>(exponential(x)) / exact - 1));
    };
    // Every 331st number of FP32 in the range, from the smallest to the largest of both signs.
    for (std::uint32_t bits = 0; bits <= std::bit_cast<std::uint32_t>(kMostExponent); bits += 331)
        check(std::bit_cast<float>(bits));
    for (std::uint32_t bits = 0; bits <= std::bit_cast<std::uint32_t>(-kLeastExponent); bits += 331)
        check(-std::bit_cast<float>(bits));
    check(kMostExponent);
    check(kLeastExponent);
    CHECK(worst <= static_cast<double>(kExponentialError));
    CHECK(exponential(0.0F) == 1);
    CHECK(exponential(std::nextafter(kLeastExponent, -kInfinity)) == 0);
    CHECK(exponential(std::nextafter(kMostExponent, kInfinity)) == kInfinity);
    for (const float large : {1e10F, std::numeric_limits<float>::max(), kInfinity}) {
        CHECK(exponential(large) == kInfinity);
        CHECK(exponential(-large) == 0);
    }
    CHECK(std::isnan(exponential(kNan)));
}

TEST_CASE("SwiGLU is silu(g) u, and limited it stays within 100") {
    const Matrix<double> gate_up = made::normal(7, 22, 1, 8);
    Matrix<double> a;
    for (const GatedActivation kind : {GatedActivation::swiglu, GatedActivation::clamp}) {
        gated_activation(kind, gate_up, a);
        REQUIRE(a.cols == 11);
        for (std::size_t r = 0; r < 7; ++r)
            for (std::size_t c = 0; c < 11; ++c) {
                double gate = gate_up.row(r)[c], up = gate_up.row(r)[c + 11];
                gate = gate / (1 + std::exp(-gate));
                if (kind == GatedActivation::clamp) {
                    gate = std::min(gate, 10.0);
                    up = std::clamp(up, -10.0, 10.0);
                }
                CHECK(a.row(r)[c] == doctest::Approx(gate * up).epsilon(1e-14));
            }
    }
    CHECK(gated(GatedActivation::swiglu, -1000, 5) == 0);
    CHECK(gated(GatedActivation::swiglu, 1000, 5) == 5000);
    CHECK(gated(GatedActivation::clamp, 1000, -1000) == -100);
    for (const GatedActivation kind : {GatedActivation::swiglu, GatedActivation::clamp}) {
        CHECK(std::isnan(gated(kind, kNan, 1)));  // no limit hides it
        CHECK(std::isnan(gated(kind, 1, kNan)));
    }
}

TEST_CASE("a limited factor has derivative 0") {
    Matrix<double> gate_up(1, 4), da(1, 2), gradient;
    gate_up.values = {50, 2, 3, -11};  // g of channel 0 and u of channel 1 are beyond the limit
    da.values = {1, 1};
    gated_activation_backward(GatedActivation::clamp, da, gate_up, gradient);
    CHECK(gradient.values[0] == 0);
    CHECK(gradient.values[1] != 0);
    CHECK(gradient.values[2] == doctest::Approx(10));
    CHECK(gradient.values[3] == 0);
}

TEST_CASE("a channel's scale is the power of two that brings its amax next to 1") {
    Matrix<float> a(2, 8);
    a.values = {1, -3, 0.0F, 1.4F, 1.42F, 5e6F,  1e-40F, kInfinity,  //
                0, 2,  0.0F, 1,    1,     -1e6F, 0,      1};
    std::vector<float> scales;
    channel_scales(a, scales);
    // log2: 0, 1.58, -, 0.485, 0.506, 22.25, -132.9 (limited), -
    CHECK(scales == std::vector<float>{1, 0.25F, 1, 1, 0.5F, 0x1p-22F, 0x1p126F, 1});
    const Matrix<double> random = made::normal(50, 30, 1, 1000);
    std::vector<double> s;
    channel_scales(random, s);
    for (std::size_t c = 0; c < 30; ++c) {
        double amax = 0;
        for (std::size_t r = 0; r < 50; ++r) amax = std::max(amax, std::abs(random.row(r)[c]));
        CHECK(s[c] == std::exp2(-std::round(std::log2(amax))));
        CHECK(amax * s[c] >= std::sqrt(0.5));
        CHECK(amax * s[c] <= std::sqrt(2.0));
    }
}

TEST_CASE("columns scaled and their weights unscaled give the same product, bit for bit") {
    const Matrix<float> a = made::narrow(made::normal(20, 30, 1, 1000)),
                        w = made::narrow(made::normal(10, 30, 2));
    Matrix<float> scaled, unscaled, expected, got;
    std::vector<float> scales;
    channel_scales(a, scales);
    scale_columns(a, scales, scaled);
    unscale_columns(w, scales, unscaled);
    multiply_nt(a, w, expected);
    multiply_nt(scaled, unscaled, got);
    CHECK(got.values == expected.values);
    unscale_columns(scaled, scales, scaled);  // in place
    CHECK(scaled.values == a.values);
    scale_columns(unscaled, scales);
    CHECK(unscaled.values == w.values);
}

TEST_CASE("equal logits have the loss ln V") {
    for (const std::size_t vocabulary : {2u, 16u, 55u}) {
        Matrix<float> logits(12, vocabulary), gradient;
        std::ranges::fill(logits.values, -3.0F);
        TokenBatch batch{3, 4, std::vector<int>(12), std::vector<int>(12, 1), {}};
        batch.targets[0] = 0;
        const LossValue value = token_loss(logits, batch, gradient);
        CHECK(value.loss == doctest::Approx(std::log(static_cast<double>(vocabulary))).epsilon(1e-7));
        CHECK(value.accuracy == doctest::Approx(1.0 / 12));  // of equal logits the first is the answer
    }
}

TEST_CASE("only scored targets count") {
    const Matrix<double> logits = made::normal(6, 4, 1, 2);
    TokenBatch batch{2, 3, std::vector<int>(6), {0, 1, 2, 3, 0, 1}, {0, 1, 0, 0, 1, 1}};
    Matrix<double> gradient;
    const LossValue value = token_loss(logits, batch, gradient);
    double loss = 0, right = 0;
    for (const std::size_t r : {1u, 4u, 5u}) {
        const std::span<const double> row = logits.row(r), d = gradient.row(r);
        const auto target = static_cast<std::size_t>(batch.targets[r]);
        double sum = 0;
        for (const double v : row) sum += std::exp(v);
        loss -= std::log(std::exp(row[target]) / sum) / 3;
        right += std::ranges::max_element(row) - row.begin() == batch.targets[r];
        for (std::size_t c = 0; c < 4; ++c)
            CHECK(d[c] == doctest::Approx((std::exp(row[c]) / sum - (c == target)) / 3).epsilon(1e-13));
    }
    CHECK(value.loss == doctest::Approx(loss).epsilon(1e-13));
    CHECK(value.accuracy == doctest::Approx(right / 3));
    for (const std::size_t r : {0u, 2u, 3u})
        for (const double v : gradient.row(r)) CHECK(v == 0);
    batch.scored.assign(6, 0);
    CHECK(std::isnan(token_loss(logits, batch, gradient).loss));
    CHECK(std::isnan(token_loss(logits, batch).accuracy));
    CHECK(gradient.values == std::vector<double>(24));
}

TEST_CASE("logits far apart have a finite loss, and one that is not a number makes the loss none") {
    Matrix<float> logits(2, 3), gradient;
    logits.values = {1000, -1000, 0, 0, 0, 3e38F};
    TokenBatch batch{1, 2, {0, 0}, {1, 2}, {}};
    CHECK(token_loss(logits, batch, gradient).loss == 1000);
    CHECK(token_loss(logits, batch).accuracy == 0.5);
    CHECK(gradient.values == std::vector<float>{0.5F, -0.5F, 0, 0, 0, 0});
    for (const std::size_t at : {1u, 2u}) {  // the target's and another
        logits.values[at] = kNan;
        CHECK(std::isnan(token_loss(logits, batch, gradient).loss));
        CHECK(std::isnan(gradient.values[0]));
        CHECK(token_loss(logits, batch).accuracy == 0.5);  // row 1; a NaN is no right answer
        logits.values[at] = 0;
    }
}
