// Forward passes at low precision against sums written out here, and what a static scale does.
#include "core/inference/lowering.h"

#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/inference/calibration.h"
#include "core/inference/rescale.h"
#include "tests/unit/inference/made.h"

using namespace fp8lab;
using namespace fp8lab::test;

namespace {

const LowFormat& format(std::string_view id) { return find_low_format(id, "test"); }

// E4M3 with one scale per tensor, element by element.
std::vector<double> e4m3(const std::vector<float>& values, float amax_given = 0) {
    float amax = amax_given;
    if (amax == 0)
        for (const float v : values) amax = std::max(amax, std::fabs(v));
    const float scale = 448 / amax;
    const FormatInfo& f = find_format("e4m3");
    std::vector<double> out;
    for (const float v : values)
        out.push_back(
            static_cast<double>(decode(f, encode(f, v * scale, Rounding::nearest, Overflow::saturate))) /
            static_cast<double>(scale));
    return out;
}

// y = relu(x w1^T + b1) w2^T + b2 with E4M3 operands in layer 1 and FP32 in layer 2.
std::vector<double> by_hand(const TrainedMlp& n, const Matrix<float>& x, float amax_given = 0) {
    const std::vector<double> a = e4m3(x.values, amax_given), w = e4m3(n.layers[0].w.values);
    const std::size_t in = x.cols, hidden = n.layers[0].w.rows, out = n.layers[1].w.rows;
    std::vector<double> y;
    for (std::size_t r = 0; r < x.rows; ++r) {
        std::vector<double> h;
        for (std::size_t j = 0; j < hidden; ++j) {
            double sum = static_cast<double>(n.layers[0].b[j]);
            for (std::size_t i = 0; i < in; ++i) sum += a[r * in + i] * w[j * in + i];
            h.push_back(std::max(sum, 0.0));
        }
        for (std::size_t j = 0; j < out; ++j) {
            double sum = static_cast<double>(n.layers[1].b[j]);
            for (std::size_t i = 0; i < hidden; ++i)
                sum += h[i] * static_cast<double>(n.layers[1].w.row(j)[i]);
            y.push_back(sum);
        }
    }
    return y;
}

void check_close(const Matrix<float>& y, const std::vector<double>& wanted) {
    REQUIRE(y.values.size() == wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i)
        CHECK(static_cast<double>(y.values[i]) == doctest::Approx(wanted[i]).epsilon(1e-4));
}

}  // namespace

TEST_CASE("a lowered forward pass is the sums of the cast operands") {
    const TrainedMlp n = made_network({24, 16, 5});
    const Matrix<float> x = normal(7, 24, 99);
    const Mix mix{{&format("e4m3"), &format("fp32")}, {&format("e4m3"), &format("fp32")}};
    check_close(run_lowered(n, x, mix).y, by_hand(n, x));
    check_close(run_lowered(n, x, mix, {{2.0F, 1.0F}, 0}).y, by_hand(n, x, 2));
    check_close(run_lowered(n, x, mix, {{2.0F, 1.0F}, 3}).y, by_hand(n, x, 16));  // margin 3: amax times 8
}

TEST_CASE("FP32 everywhere is the network itself, for each activation") {
    for (const Activation activation : {Activation::relu, Activation::tanh, Activation::gelu}) {
        const TrainedMlp n = made_network({12, 20, 8, 3}, activation);
        const Matrix<float> x = normal(9, 12, 5);
        CHECK(run_lowered(n, x, uniform_mix(3, format("fp32"))).y.values == forward(n, x).values);
    }
}

TEST_CASE("scales calibrated on the rows at hand are the dynamic ones, where there is a scale per tensor") {
    const TrainedMlp n = made_network({32, 48, 4});
    const Matrix<float> x = normal(32, 32, 3);
    for (const LowFormat& f : low_formats()) {
        CAPTURE(f.id);
        // The second layer's input is lowered too, so its amax is that of its own pass.
        const Mix first{{&f, &format("fp32")}, {&f, &format("fp32")}};
        const StaticScales own{calibrated_amaxes(n, x, {1}), 0};
        CHECK(run_lowered(n, x, first, own).y.values == run_lowered(n, x, first).y.values);
        StaticScales half = own;
        for (float& amax : half.amaxes) amax /= 4;
        const bool moved = run_lowered(n, x, first, half).y.values != run_lowered(n, x, first).y.values;
        CHECK(moved == f.has_static_scale);
        CHECK((run_lowered(n, x, first, half, true).layers[0].a.overflow > 0) == f.has_static_scale);
    }
}

TEST_CASE("bits of a mix are the mean over its weights, scales included") {
    const TrainedMlp n = made_network({64, 32, 10});  // 2048 and 320 weights
    const Mix mix{{&format("mxfp4"), &format("bf16")}, {&format("mxfp4"), &format("bf16")}};
    CHECK(bits_per_weight(n, mix) == doctest::Approx((2048 * 4.25 + 320 * 16) / 2368));
    CHECK(weight_bytes(n, mix) == doctest::Approx((2048 * 4.25 + 320 * 16) / 8));
    const TrainedMlp odd = made_network({80, 8});  // the last block of 32 is partial
    CHECK(bits_per_weight(odd, uniform_mix(1, format("mxfp8"))) == doctest::Approx(8 + 8 * 3 / 80.0));
}

TEST_CASE("outlier channels and smoothing leave the function as it is, to the bit") {
    const TrainedMlp n = made_network({20, 40, 24, 6});
    const Matrix<float> x = normal(50, 20, 8);
    const Matrix<float> y = forward(n, x);
    for (const float ratio : {2.0F, 64.0F, 1024.0F}) {
        const TrainedMlp outliers = with_outliers(n, x, 4, ratio);
        CHECK(forward(outliers, x).values == y.values);
        std::size_t larger = 0;
        for (std::size_t j = 0; j < 40; ++j) larger += outliers.layers[0].b[j] != n.layers[0].b[j];
        CHECK(larger == 4);
        for (const double alpha : {0.0, 0.25, 0.5, 0.75, 1.0}) {
            const TrainedMlp smooth = smoothed(outliers, x, alpha);
            CHECK(forward(smooth, x).values == y.values);
            CHECK(smooth.layers[1].w.values != outliers.layers[1].w.values);
        }
    }
    CHECK_THROWS_WITH_AS(smoothed(made_network({4, 4, 4}, Activation::tanh), normal(2, 4, 1), 0.5),
                         doctest::Contains("needs relu"), Error);
    CHECK_THROWS_WITH_AS(with_outliers(made_network({4, 4}), normal(2, 4, 1), 4, 2),
                         doctest::Contains("needs a layer before"), Error);
}

TEST_CASE("a mix that does not have a format per layer is refused") {
    const TrainedMlp n = made_network({4, 4, 2});
    CHECK_THROWS_AS(run_lowered(n, normal(2, 4, 1), uniform_mix(3, format("e4m3"))), Error);
    CHECK_THROWS_AS(run_lowered(n, normal(2, 4, 1), uniform_mix(2, format("e4m3")), {{1.0F}, 0}), Error);
    CHECK_THROWS_WITH_AS(find_low_format("e4m4", "--weights"),
                         doctest::Contains("mxfp6-e2m3 mxfp6-e3m2 nvfp4"), Error);
}
