// The three products, whole and cut into parts, against sums in float64.
#include "core/nn/matrix.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <random>

#include "core/threads/ask.h"
#include "core/threads/parallel.h"

using namespace fp8lab;

namespace {

Matrix<float> random_matrix(std::size_t rows, std::size_t cols, std::mt19937& source) {
    Matrix<float> out(rows, cols);
    std::normal_distribution<float> normal;
    for (float& value : out.values) value = normal(source);
    return out;
}

Matrix<float> transposed(const Matrix<float>& m) {
    Matrix<float> out(m.cols, m.rows);
    for (std::size_t r = 0; r < m.rows; ++r)
        for (std::size_t c = 0; c < m.cols; ++c) out.row(c)[r] = m.row(r)[c];
    return out;
}

// a b^T by each of the three products: (M, K) by (N, K).
std::vector<Matrix<float>> products(const Matrix<float>& a, const Matrix<float>& b) {
    std::vector<Matrix<float>> out(3);
    multiply_nt(a, b, out[0]);
    multiply_nn(a, transposed(b), out[1]);
    multiply_tn(transposed(a), transposed(b), out[2]);
    return out;
}

struct Shape {
    std::size_t m, n, k;
};
// One part; parts along rows, along columns; lengths that no packet divides; the most parts.
constexpr Shape kShapes[] = {{5, 3, 7}, {300, 40, 500}, {40, 301, 500}, {269, 257, 100}, {2100, 64, 300}};

}  // namespace

TEST_CASE("the products are those of float64, in every part") {
    for (const auto& [m, n, k] : kShapes) {
        CAPTURE(m);
        CAPTURE(n);
        std::mt19937 source(7);
        const Matrix<float> a = random_matrix(m, k, source), b = random_matrix(n, k, source);
        for (const Matrix<float>& got : products(a, b)) {
            REQUIRE(got.rows == m);
            REQUIRE(got.cols == n);
            double worst = 0;
            for (std::size_t r = 0; r < m; ++r)
                for (std::size_t c = r % 7; c < n; c += 7) {
                    double sum = 0;
                    for (std::size_t i = 0; i < k; ++i) sum += double{a.row(r)[i]} * double{b.row(c)[i]};
                    worst = std::max(worst, std::fabs(double{got.row(r)[c]} - sum));
                }
            CHECK(worst < 2e-6 * static_cast<double>(k));
        }
    }
}

TEST_CASE("a product has the same bytes with 1, 2, 3 and 8 threads") {
    for (const auto& [m, n, k] : kShapes) {
        CAPTURE(m);
        CAPTURE(n);
        std::mt19937 source(8);
        const Matrix<float> a = random_matrix(m, k, source), b = random_matrix(n, k, source);
        set_threads(1);
        const auto one = products(a, b);
        for (const int count : {2, 3, 8}) {
            set_threads(count);
            const auto many = products(a, b);
            for (std::size_t i = 0; i < one.size(); ++i) CHECK((many[i].values == one[i].values));
        }
        set_threads(1);
    }
}

TEST_CASE(
    "a product that takes long asks between parts of at most 4e9 multiply-adds, with the bytes of its "
    "halves") {
    constexpr std::size_t kSide = 128, kDepth = 499'999;  // 8.2e9 multiply-adds
    Matrix<float> a(kSide, kDepth), b(kSide, kDepth), whole;
    for (std::size_t i = 0; i < a.values.size(); ++i) {
        a.values[i] = static_cast<float>(i % 251) - 125;
        b.values[i] = static_cast<float>(i % 127) / 64;
    }
    std::atomic<int> asked = 0;
    {
        const AskBetween ask([&] { ++asked; });
        multiply_nt(a, b, whole);
    }
    CHECK(asked >= 2);
    for (const std::size_t half : {0, 1}) {
        Matrix<float> rows(kSide / 2, kDepth), product;
        std::copy_n(a.values.begin() + static_cast<std::ptrdiff_t>(half * rows.values.size()),
                    rows.values.size(), rows.values.begin());
        multiply_nt(rows, b, product);
        CHECK(std::equal(product.values.begin(), product.values.end(),
                         whole.values.begin() + static_cast<std::ptrdiff_t>(half * product.values.size())));
    }
}
