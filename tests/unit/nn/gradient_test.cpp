// The backward pass that ships, instantiated for double, against central differences of its own forward pass.
#include <doctest/doctest.h>

#include <cmath>
#include <utility>

#include "core/base/rng.h"
#include "core/nn/loss.h"
#include "core/nn/models/mlp/network.h"

using namespace fp8lab;

namespace {

constexpr int kSizes[] = {5, 7, 6, 3};
constexpr std::size_t kBatch = 9;

struct Problem {
    Matrix<double> x{kBatch, 5}, target{kBatch, 3};
    Network<double> network;
    LossKind loss;

    Problem(Activation activation, LossKind kind) : network(kSizes, activation), loss(kind) {
        Rng rng(7);
        for (double& v : x.values) v = static_cast<double>(rng.normal());
        for (std::size_t r = 0; r < kBatch; ++r) target.row(r)[r % 3] = 1;
        network.initialise(11);
        for (Layer<double>& layer : network.layers())
            for (double& b : layer.b) b = 0.3 * static_cast<double>(rng.normal());
    }
    double value() {
        NoCasts<double> casts;
        Matrix<double> dy;
        return loss_and_gradient(loss, network.forward(x, casts), target, dy).loss;
    }
    void backward() {
        NoCasts<double> casts;
        Matrix<double> dy;
        loss_and_gradient(loss, network.forward(x, casts), target, dy);
        network.backward(dy, casts);
    }
};

// |numeric - analytic| / |numeric| over one parameter tensor.
double relative_error(Problem& problem, std::vector<double>& parameters,
                      const std::vector<double>& gradient) {
    constexpr double kStep = 1e-5;
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const double kept = parameters[i];
        parameters[i] = kept + kStep;
        const double above = problem.value();
        parameters[i] = kept - kStep;
        const double below = problem.value();
        parameters[i] = kept;
        const double numeric = (above - below) / (2 * kStep);
        difference += (numeric - gradient[i]) * (numeric - gradient[i]);
        norm += numeric * numeric;
    }
    return std::sqrt(difference / norm);
}

}  // namespace

TEST_CASE("backward agrees with central differences for every activation and loss") {
    for (const Activation activation : {Activation::tanh, Activation::gelu, Activation::relu})
        for (const LossKind loss : {LossKind::mse, LossKind::cross_entropy}) {
            CAPTURE(to_string(activation));
            CAPTURE(to_string(loss));
            Problem problem(activation, loss);
            problem.backward();
            for (Layer<double>& layer : problem.network.layers()) {
                const std::vector<double> dw = layer.dw.values, db = layer.db;
                CHECK(relative_error(problem, layer.w.values, dw) <= 1e-6);
                CHECK(relative_error(problem, layer.b, db) <= 1e-6);
            }
        }
}

TEST_CASE("the FP32 network gives the float64 network's gradients to FP32 precision") {
    for (const Activation activation : {Activation::tanh, Activation::gelu, Activation::relu}) {
        CAPTURE(to_string(activation));
        Problem reference(activation, LossKind::cross_entropy);
        reference.backward();
        Network<float> network(kSizes, activation);
        for (std::size_t l = 0; l < network.layers().size(); ++l) {
            const Layer<double>& from = std::as_const(reference.network).layers()[l];
            network.layers()[l].w.values.assign(from.w.values.begin(), from.w.values.end());
            network.layers()[l].b.assign(from.b.begin(), from.b.end());
        }
        Matrix<float> x(kBatch, 5), target(kBatch, 3), dy;
        x.values.assign(reference.x.values.begin(), reference.x.values.end());
        target.values.assign(reference.target.values.begin(), reference.target.values.end());
        NoCasts<float> casts;
        loss_and_gradient(LossKind::cross_entropy, network.forward(x, casts), target, dy);
        network.backward(dy, casts);
        for (std::size_t l = 0; l < network.layers().size(); ++l) {
            const auto& expected = std::as_const(reference.network).layers()[l].dw.values;
            const auto& got = network.layers()[l].dw.values;
            double difference = 0, norm = 0;
            for (std::size_t i = 0; i < expected.size(); ++i) {
                difference += std::pow(static_cast<double>(got[i]) - expected[i], 2);
                norm += expected[i] * expected[i];
            }
            CHECK(std::sqrt(difference / norm) <= 2e-6);
        }
    }
}

TEST_CASE("cross-entropy of scores far apart stays finite and exact") {
    Matrix<float> y(1, 2), target(1, 2), dy;
    y.values = {200.0F, -200.0F};
    target.values = {0, 1};
    const LossValue value = loss_and_gradient(LossKind::cross_entropy, y, target, dy);
    CHECK(value.loss == doctest::Approx(400));
    CHECK(value.accuracy == 0);
    CHECK(dy.values == std::vector<float>{1, -1});
}

TEST_CASE("mean square is the mean over batch and outputs") {
    Matrix<float> y(2, 2), target(2, 2), dy;
    y.values = {1, 2, 3, 4};
    const LossValue value = loss_and_gradient(LossKind::mse, y, target, dy);
    CHECK(value.loss == doctest::Approx((1 + 4 + 9 + 16) / 4.0));
    CHECK(std::isnan(value.accuracy));
    CHECK(dy.values == std::vector<float>{0.5F, 1, 1.5F, 2});
}
