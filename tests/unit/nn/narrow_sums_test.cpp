// Products with a narrow accumulator, against one addition after the other in double.
#include "core/nn/models/mlp/narrow_sums.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>

using namespace fp8lab;

namespace {

Matrix<float> drawn(std::size_t rows, std::size_t cols, unsigned seed) {
    std::mt19937 engine(seed);
    std::normal_distribution<float> normal;
    Matrix<float> out(rows, cols);
    for (float& v : out.values) v = normal(engine);
    return out;
}

// To nearest even on the grid of `bits` stored mantissa bits, by arithmetic instead of by bits.
float rounded(float sum, int bits) {
    if (sum == 0 || !std::isfinite(sum)) return sum;
    int exponent = 0;
    std::frexp(static_cast<double>(sum), &exponent);
    const double unit = std::ldexp(1.0, std::max(exponent - 1, -126) - bits);
    return static_cast<float>(std::nearbyint(static_cast<double>(sum) / unit) * unit);
}

float one_by_one(const Matrix<float>& a, const Matrix<float>& b, std::size_t r, std::size_t c, int bits) {
    float sum = 0;
    for (std::size_t k = 0; k < a.cols; ++k) {
        const float product = a.values[r * a.cols + k] * b.values[c * b.cols + k];
        sum = rounded(sum + product, bits);
    }
    return sum;
}

Matrix<float> transposed(const Matrix<float>& m) {
    Matrix<float> out(m.cols, m.rows);
    for (std::size_t r = 0; r < m.rows; ++r)
        for (std::size_t c = 0; c < m.cols; ++c) out.values[c * m.rows + r] = m.values[r * m.cols + c];
    return out;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace

TEST_CASE("a narrow accumulator rounds after every addition, in the order of k") {
    for (const int bits : {2, 3, 10, 22})
        for (const std::size_t cols : {1U, 7U, 16U, 37U}) {
            CAPTURE(bits);
            CAPTURE(cols);
            const auto a = drawn(9, 50, 1), b = drawn(cols, 50, 2);
            Matrix<float> out;
            multiply_nt(a, b, out, bits);
            Matrix<float> expected(9, cols);
            for (std::size_t r = 0; r < 9; ++r)
                for (std::size_t c = 0; c < cols; ++c)
                    expected.values[r * cols + c] = one_by_one(a, b, r, c, bits);
            CHECK(same_bits(out.values, expected.values));
        }
}

TEST_CASE("the three products with a narrow accumulator are one product, read in other directions") {
    const auto a = drawn(40, 33, 3), b = drawn(21, 33, 4);
    Matrix<float> nt, nn, tn;
    multiply_nt(a, b, nt, 5);
    multiply_nn(a, transposed(b), nn, 5);
    multiply_tn(transposed(a), transposed(b), tn, 5);
    CHECK(same_bits(nt.values, nn.values));
    CHECK(same_bits(nt.values, tn.values));
}

TEST_CASE("without bits to drop a product is that of matrix.h, and fewer bits are farther from it") {
    const auto a = drawn(64, 300, 5), b = drawn(64, 300, 6);
    Matrix<float> usual, same;
    multiply_nt(a, b, usual);
    multiply_nt(a, b, same, 0);
    CHECK(same_bits(usual.values, same.values));
    double before = 0;
    for (const int bits : {22, 10, 7, 5, 3, 2}) {
        Matrix<float> out;
        multiply_nt(a, b, out, bits);
        double error = 0;
        for (std::size_t i = 0; i < out.values.size(); ++i)
            error += std::pow(out.values[i] - usual.values[i], 2);
        CHECK(error > before);
        before = error;
    }
}

TEST_CASE("NaN and Inf pass a narrow accumulator") {
    Matrix<float> a(1, 2), b(1, 2), out;
    const std::uint32_t all_set = 0x7FFFFFFF;
    float nan = 0;
    std::memcpy(&nan, &all_set, sizeof nan);
    a.values = {nan, 1}, b.values = {1, 1};
    multiply_nt(a, b, out, 3);
    CHECK(std::isnan(out.values[0]));
    a.values = {std::numeric_limits<float>::infinity(), -1};
    multiply_nt(a, b, out, 3);
    CHECK(out.values[0] == std::numeric_limits<float>::infinity());
    a.values = {std::numeric_limits<float>::max(), 1};
    multiply_nt(a, b, out, 3);
    CHECK(out.values[0] == std::numeric_limits<float>::infinity());
}
