#include "core/nn/optimizer.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "core/base/rng.h"

using namespace fp8lab;

namespace {

constexpr std::size_t kSize = 70'001;  // several threads' ranges and an odd rest

// Loshchilov and Hutter's algorithm 2 with PyTorch's constants, in float64 and as plainly as it is printed.
struct Reference {
    std::vector<double> w, m = std::vector<double>(kSize), v = std::vector<double>(kSize);
    void step(const std::vector<float>& g, double lr, double decay, int t) {
        for (std::size_t i = 0; i < kSize; ++i) {
            const double gi = static_cast<double>(g[i]);
            m[i] = 0.9 * m[i] + 0.1 * gi;
            v[i] = 0.999 * v[i] + 0.001 * gi * gi;
            const double m_hat = m[i] / (1 - std::pow(0.9, t)), v_hat = v[i] / (1 - std::pow(0.999, t));
            w[i] = w[i] - lr * decay * w[i] - lr * m_hat / (std::sqrt(v_hat) + 1e-8);
        }
    }
};

}  // namespace

TEST_CASE("AdamW stays within 1e-6 of a float64 reference over ten steps") {
    for (const double decay : {0.0, 0.1}) {
        CAPTURE(decay);
        Rng rng(3);
        std::vector<float> w(kSize), g(kSize);
        rng.fill_normal(w);
        Reference reference;
        reference.w.assign(w.begin(), w.end());
        Moments moments;
        for (int t = 0; t < 10; ++t) {
            rng.fill_normal(g, 1e-3F);
            const double lr = 1e-2 / (t + 1);
            CHECK(update({.kind = OptimizerKind::adamw, .lr = lr, .weight_decay = decay, .step = t}, w, g,
                         moments));
            reference.step(g, lr, decay, t + 1);
        }
        double worst = 0;
        for (std::size_t i = 0; i < kSize; ++i)
            worst = std::max(worst, std::abs(static_cast<double>(w[i]) - reference.w[i]) /
                                        std::max(1.0, std::abs(reference.w[i])));
        CHECK(worst <= 1e-6);
    }
}

TEST_CASE("SGD has no moments and decays the weights apart from the gradient") {
    std::vector<float> w = {1, -2}, g = {0.5F, 0.25F};
    Moments moments;
    CHECK(update({.kind = OptimizerKind::sgd, .lr = 0.5, .weight_decay = 0.25, .step = 0}, w, g, moments));
    CHECK(w == std::vector<float>{1 - 0.125F - 0.25F, -2 + 0.25F - 0.125F});
    CHECK(moments.m.empty());
}

TEST_CASE("an update to a non-finite weight is told, wherever it is") {
    for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::sgd})
        for (const std::size_t where : {std::size_t{0}, kSize / 2, kSize - 1}) {
            std::vector<float> w(kSize), g(kSize);
            g[where] = std::numeric_limits<float>::quiet_NaN();
            Moments moments;
            CHECK_FALSE(update({kind, 0.1, 0, 0}, w, g, moments));
        }
}

TEST_CASE(
    "AdamW takes beta1, beta2 and eps: the first update is lr g / (|g| + eps), whatever the betas are") {
    for (const double beta2 : {0.95, 0.999}) {
        std::vector<float> w{1, 1}, g{0.5F, -3};
        Moments moments;
        update({.kind = OptimizerKind::adamw, .lr = 0.1, .beta1 = 0.8, .beta2 = beta2, .eps = 0.5}, w, g,
               moments);
        CHECK(w[0] == doctest::Approx(1 - 0.1 * 0.5 / (0.5 + 0.5)));
        CHECK(w[1] == doctest::Approx(1 + 0.1 * 3 / (3 + 0.5)));
        CHECK(moments.m[0] == doctest::Approx(0.2 * 0.5));
        CHECK(moments.v[1] == doctest::Approx((1 - beta2) * 9));
    }
}

TEST_CASE(
    "limit_norm scales all gradients alike where their common norm is above the limit, and nothing else") {
    std::vector<float> a{3, 0, 0}, b{0, 4};
    const std::array<std::span<float>, 2> both = {a, b};
    CHECK(limit_norm(both, 10) == doctest::Approx(5));
    CHECK(a[0] == 3);
    CHECK(limit_norm(both, 1) == doctest::Approx(5));
    CHECK(a[0] == doctest::Approx(3 / 5.000001));
    CHECK(b[1] == doctest::Approx(4 / 5.000001));
    CHECK(limit_norm(both, 2) == doctest::Approx(1).epsilon(1e-5));
    a[1] = std::numeric_limits<float>::quiet_NaN();
    CHECK(std::isnan(limit_norm(both, 1)));
    CHECK(b[1] == doctest::Approx(4 / 5.000001));
}
