// The backward pass of each operation of a transformer, instantiated for double, against central differences of
// its own forward pass.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/nn/ops/embedding.h"
#include "core/nn/ops/rms_norm.h"
#include "core/nn/ops/rope.h"
#include "core/nn/ops/swiglu.h"
#include "core/nn/ops/token_loss.h"
#include "tests/unit/nn/ops_made.h"

using namespace fp8lab;

namespace {
constexpr double kBound = 1e-6;
}

TEST_CASE("RMSNorm: the gradients of x and of the gain") {
    // Rows of very different size; the mean square of the last is the epsilon.
    Matrix<double> x = made::normal(5, 11, 1), normalised, y, dx;
    for (std::size_t r = 0; r < x.rows; ++r)
        for (double& v : x.row(r)) v *= r == 4 ? 1e-3 : std::pow(3.0, static_cast<double>(r));
    const Matrix<double> dy = made::normal(5, 11, 2);
    std::vector<double> g = made::normal_vector(11, 3), inverse_rms, dg;
    const auto loss = [&] {
        rms_norm(x, g, kRmsEpsilon, normalised, inverse_rms, y);
        return made::weighted(y, dy);
    };
    loss();
    rms_norm_backward(dy, normalised, inverse_rms, g, dx, dg);
    for (std::size_t r = 0; r < x.rows; ++r) {  // row by row: the small row has the large gradients
        CAPTURE(r);
        std::vector<double> row(x.row(r).begin(), x.row(r).end());
        const auto loss_of_row = [&] {
            std::ranges::copy(row, x.row(r).begin());
            return loss();
        };
        const auto numeric = made::differences(row, loss_of_row, r == 4 ? 1e-8 : 1e-5);
        std::ranges::copy(row, x.row(r).begin());
        const std::vector<double> got(dx.row(r).begin(), dx.row(r).end());
        CHECK(made::relative_error(got, numeric) <= kBound);
    }
    CHECK(made::relative_error(dg, made::differences(g, loss)) <= kBound);
}

TEST_CASE("RoPE: the gradient is the rotation back") {
    const RotaryTable<double> table(5, 6);
    Matrix<double> x = made::normal(10, 12, 1), gradient = made::normal(10, 12, 2);
    const Matrix<double> dy = gradient;
    rotate_back(gradient, table);
    const std::vector<double> numeric = made::differences(x.values, [&] {
        Matrix<double> y = x;
        rotate(y, table);
        return made::weighted(y, dy);
    });
    CHECK(made::relative_error(gradient.values, numeric) <= kBound);
}

TEST_CASE("attention: the gradients of q, k and v, with and without shared keys") {
    for (const AttentionShape& shape : made::kAttentionShapes) {
        CAPTURE(made::text_of(shape));
        auto a = made::attention(shape);
        const auto loss = [&] {
            a.forward();
            return made::weighted(a.out, a.dout);
        };
        loss();
        a.backward();
        const auto dq = a.dq.values, dk = a.dk.values, dv = a.dv.values;
        CHECK(made::relative_error(dq, made::differences(a.q.values, loss)) <= kBound);
        CHECK(made::relative_error(dk, made::differences(a.k.values, loss)) <= kBound);
        CHECK(made::relative_error(dv, made::differences(a.v.values, loss)) <= kBound);
    }
}

TEST_CASE("SwiGLU: the gradients of gate and up, plain and limited") {
    for (const GatedActivation kind : {GatedActivation::swiglu, GatedActivation::clamp}) {
        CAPTURE(static_cast<int>(kind));
        // A standard deviation of 8: a tenth of the gates and a fifth of the ups are beyond the limit.
        Matrix<double> gate_up = made::normal(9, 26, 5, 8), a, gradient;
        const Matrix<double> da = made::normal(9, 13, 6);
        const auto loss = [&] {
            gated_activation(kind, gate_up, a);
            return made::weighted(a, da);
        };
        gated_activation_backward(kind, da, gate_up, gradient);
        CHECK(made::relative_error(gradient.values, made::differences(gate_up.values, loss)) <= kBound);
    }
}

TEST_CASE("embedding: the gradient of the table") {
    Matrix<double> table = made::normal(5, 7, 1), out, dtable;
    const std::vector<int> tokens = {3, 0, 3, 3, 1, 0};  // 2 and 4 do not occur
    const Matrix<double> dout = made::normal(6, 7, 2);
    gather_backward(dout, tokens, 5, dtable);
    CHECK(dtable.rows == 5);
    const std::vector<double> numeric = made::differences(table.values, [&] {
        gather(table, tokens, out);
        return made::weighted(out, dout);
    });
    CHECK(made::relative_error(dtable.values, numeric) <= kBound);
    for (const std::size_t missing : {2u, 4u})
        for (const double v : dtable.row(missing)) CHECK(v == 0);
}

TEST_CASE("token loss: the gradient of the logits, all scored and some") {
    TokenBatch batch{2, 3, std::vector<int>(6), {4, 0, 1, 1, 2, 3}, {}};
    for (const std::vector<std::uint8_t>& scored : {std::vector<std::uint8_t>{}, {1, 0, 0, 1, 1, 0}}) {
        CAPTURE(scored.size());
        batch.scored = scored;
        Matrix<double> logits = made::normal(6, 5, 1, 3), gradient;
        const double loss = token_loss(logits, batch, gradient).loss;
        CHECK(loss == token_loss(logits, batch).loss);
        const auto numeric = made::differences(logits.values, [&] { return token_loss(logits, batch).loss; });
        CHECK(made::relative_error(gradient.values, numeric) <= kBound);
    }
}
