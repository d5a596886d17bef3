// The operations of a transformer against their definitions, written here as plainly as can be, and the
// properties that a model rests on.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <limits>

#include "core/base/error.h"
#include "core/nn/ops/columns.h"
#include "core/nn/ops/embedding.h"
#include "core/nn/ops/rms_norm.h"
#include "core/nn/ops/rope.h"
#include "tests/unit/nn/ops_made.h"

using namespace fp8lab;

namespace {

// softmax(q k^T / sqrt(head_size)) v, one query and one head after the other.
Matrix<double> attention_by_definition(const made::Attention<double>& a) {
    const AttentionShape& shape = a.shape;
    Matrix<double> out(shape.rows(), shape.query_cols());
    for (std::size_t s = 0; s < shape.sequences; ++s)
        for (std::size_t h = 0; h < shape.heads; ++h)
            for (std::size_t t = 0; t < shape.context; ++t) {
                const std::size_t row = s * shape.context + t, kv = h * shape.kv_heads / shape.heads;
                double sum = 0;
                for (std::size_t j = 0; j <= t; ++j) {
                    double score = 0;
                    for (std::size_t i = 0; i < shape.head_size; ++i)
                        score += a.q.row(row)[h * shape.head_size + i] *
                                 a.k.row(s * shape.context + j)[kv * shape.head_size + i];
                    const double weight = std::exp(score / std::sqrt(static_cast<double>(shape.head_size)));
                    sum += weight;
                    for (std::size_t i = 0; i < shape.head_size; ++i)
                        out.row(row)[h * shape.head_size + i] +=
                            weight * a.v.row(s * shape.context + j)[kv * shape.head_size + i];
                }
                for (std::size_t i = 0; i < shape.head_size; ++i)
                    out.row(row)[h * shape.head_size + i] /= sum;
            }
    return out;
}

}  // namespace

TEST_CASE("attention is its definition") {
    for (const AttentionShape& shape : made::kAttentionShapes) {
        CAPTURE(made::text_of(shape));
        auto a = made::attention(shape);
        a.forward();
        CHECK(made::relative_error(a.out, attention_by_definition(a)) <= 1e-13);
    }
}

TEST_CASE("probabilities and score gradients: 0 above the diagonal, rows that sum to 1 and to 0") {
    for (const AttentionShape& shape : made::kAttentionShapes) {
        CAPTURE(made::text_of(shape));
        auto a = made::attention(shape);
        a.p.values.assign(shape.rows() * shape.heads * shape.context, 7);  // what is there is overwritten
        a.ds = a.p;
        a.forward();
        a.backward();
        for (std::size_t r = 0; r < a.p.rows; ++r) {
            double p = 0, ds = 0;
            for (std::size_t j = 0; j < shape.context; ++j) {
                if (j > r % shape.context) {
                    CHECK(a.p.row(r)[j] == 0);
                    CHECK(a.ds.row(r)[j] == 0);
                }
                p += a.p.row(r)[j];
                ds += a.ds.row(r)[j];
            }
            CHECK(p == doctest::Approx(1).epsilon(1e-14));
            CHECK(std::abs(ds) <= 1e-13);
        }
    }
}

TEST_CASE("attention is causal: a later token changes no byte of what is before it") {
    for (const AttentionShape& shape : made::kAttentionShapes) {
        CAPTURE(made::text_of(shape));
        auto a = made::narrow(made::attention(shape)), b = a;
        const std::size_t changed = shape.context - 2;
        for (Matrix<float>* m : {&b.q, &b.k, &b.v})
            for (float& v : m->row(changed)) v = 100 - 3 * v;
        a.forward();
        b.forward();
        for (std::size_t t = 0; t < shape.context; ++t) {
            const bool same = std::ranges::equal(a.out.row(t), b.out.row(t));
            CHECK(same == (t < changed));
        }
    }
}

TEST_CASE("scores far apart stay finite, and one that is not finite shows in its rows only") {
    auto a = made::narrow(made::attention({1, 20, 2, 1, 8}, 1e4));
    a.forward();
    for (const float v : a.out.values) CHECK(std::isfinite(v));
    a.q.row(5)[3] = std::numeric_limits<float>::quiet_NaN();  // head 0
    a.forward();
    for (std::size_t r = 0; r < 20; ++r)
        for (std::size_t c = 0; c < 16; ++c) CHECK(std::isnan(a.out.row(r)[c]) == (r == 5 && c < 8));
}

TEST_CASE("RoPE turns each pair by its angle, as a complex number") {
    const RotaryTable<double> table(9, 8);
    CHECK(table.context() == 9);
    CHECK(table.head_size() == 8);
    const Matrix<double> x = made::normal(18, 24, 1);
    Matrix<double> y = x;
    rotate(y, table);
    for (std::size_t r = 0; r < x.rows; ++r)
        for (std::size_t head = 0; head < 3; ++head)
            for (std::size_t i = 0; i < 4; ++i) {
                const std::size_t a = head * 8 + i, b = a + 4;
                const double angle =
                    static_cast<double>(r % 9) * std::pow(10000.0, -static_cast<double>(i) / 4);
                const auto turned = std::complex<double>(x.row(r)[a], x.row(r)[b]) * std::polar(1.0, angle);
                CHECK(y.row(r)[a] == doctest::Approx(turned.real()).epsilon(1e-12));
                CHECK(y.row(r)[b] == doctest::Approx(turned.imag()).epsilon(1e-12));
            }
    rotate_back(y, table);
    CHECK(made::relative_error(y, x) <= 1e-15);
}

TEST_CASE("with RoPE a score depends on the distance of two tokens only") {
    const RotaryTable<double> table(32, 8);
    const Matrix<double> q = made::normal(1, 8, 1), k = made::normal(1, 8, 2);
    const auto score = [&](std::size_t at, std::size_t other) {
        Matrix<double> left(32, 8), right(32, 8);
        std::ranges::copy(q.values, left.row(at).begin());
        std::ranges::copy(k.values, right.row(other).begin());
        rotate(left, table);
        rotate(right, table);
        double sum = 0;
        for (std::size_t i = 0; i < 8; ++i) sum += left.row(at)[i] * right.row(other)[i];
        return sum;
    };
    CHECK(score(9, 4) == doctest::Approx(score(31, 26)).epsilon(1e-12));
    CHECK(std::abs(score(9, 4) - score(9, 3)) > 1e-3);
}

TEST_CASE("a head that has no halves cannot be rotated") {
    CHECK_THROWS_WITH(RotaryTable<float>(8, 5),
                      "head size: 5 cannot be rotated in halves; it must be even and not 0");
    CHECK_THROWS_AS(RotaryTable<float>(8, 0), Error);
}

TEST_CASE("RMSNorm is its definition") {
    const Matrix<double> x = made::normal(6, 19, 1, 3);
    const std::vector<double> g = made::normal_vector(19, 2);
    Matrix<double> normalised, y;
    std::vector<double> inverse_rms;
    rms_norm(x, g, kRmsEpsilon, normalised, inverse_rms, y);
    for (std::size_t r = 0; r < x.rows; ++r) {
        double squares = 0;
        for (const double v : x.row(r)) squares += v * v;
        const double rms = std::sqrt(squares / 19 + 1e-6);
        CHECK(inverse_rms[r] == doctest::Approx(1 / rms).epsilon(1e-14));
        for (std::size_t c = 0; c < 19; ++c) {
            CHECK(normalised.row(r)[c] == doctest::Approx(x.row(r)[c] / rms).epsilon(1e-14));
            CHECK(y.row(r)[c] == doctest::Approx(x.row(r)[c] / rms * g[c]).epsilon(1e-14));
        }
    }
    Matrix<double> zero(1, 19);
    rms_norm(zero, g, kRmsEpsilon, normalised, inverse_rms, y);
    CHECK(inverse_rms[0] == doctest::Approx(1000));  // of a row of zeros: the epsilon's
    for (const double v : y.values) CHECK(v == 0);
}

TEST_CASE("an embedding is the table's row") {
    const Matrix<double> table = made::normal(4, 3, 1);
    Matrix<double> out;
    gather(table, std::vector<int>{2, 0, 2}, out);
    for (std::size_t c = 0; c < 3; ++c) {
        CHECK(out.row(0)[c] == table.row(2)[c]);
        CHECK(out.row(1)[c] == table.row(0)[c]);
        CHECK(out.row(2)[c] == table.row(2)[c]);
    }
}

TEST_CASE("columns are taken and put back where they were") {
    const Matrix<double> whole = made::normal(5, 9, 1);
    Matrix<double> part, copy = whole;
    take_columns(whole, 2, 3, part);
    REQUIRE(part.cols == 3);
    for (std::size_t r = 0; r < 5; ++r)
        for (std::size_t c = 0; c < 3; ++c) CHECK(part.row(r)[c] == whole.row(r)[c + 2]);
    for (double& v : part.values) v = -v;
    put_columns(part, 2, copy);
    for (std::size_t r = 0; r < 5; ++r)
        for (std::size_t c = 0; c < 9; ++c)
            CHECK(copy.row(r)[c] == (c >= 2 && c < 5 ? -1 : 1) * whole.row(r)[c]);
}
