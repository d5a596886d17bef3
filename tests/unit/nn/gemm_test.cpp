// Products of parts of matrices against sums in float64: both sides in memory or transposed, rows with gaps.
#include "core/nn/gemm.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace fp8lab;

namespace {

constexpr std::size_t kRows = 5, kCols = 7, kDepth = 9, kStride = 12;

template <class T>
struct Sides {
    std::vector<T> left = std::vector<T>(kDepth * kStride), right = std::vector<T>(kDepth * kStride),
                   out = std::vector<T>(kRows * kStride);

    Sides() {
        std::mt19937 source(7);
        std::normal_distribution<T> normal;
        for (auto* values : {&left, &right, &out})
            for (T& value : *values) value = normal(source);
    }
    static T at(const std::vector<T>& values, bool transposed, std::size_t row, std::size_t col) {
        return transposed ? values[col * kStride + row] : values[row * kStride + col];
    }
    double sum(bool left_transposed, bool right_transposed, std::size_t row, std::size_t col) const {
        double sum = 0;
        for (std::size_t i = 0; i < kDepth; ++i)
            sum += double{at(left, left_transposed, row, i)} * double{at(right, right_transposed, i, col)};
        return sum;
    }
};

template <class T>
void check_products(double tolerance) {
    for (const bool left : {false, true})
        for (const bool right : {false, true})
            for (const T keep : {T{0}, T{1}, T{-0.5}}) {
                Sides<T> sides;
                const std::vector<T> before = sides.out;
                gemm(kRows, kCols, kDepth, T{2}, {{sides.left.data(), kStride}, left},
                     {{sides.right.data(), kStride}, right}, keep, {sides.out.data(), kStride});
                CAPTURE(left);
                CAPTURE(right);
                CAPTURE(keep);
                for (std::size_t r = 0; r < kRows; ++r)
                    for (std::size_t c = 0; c < kStride; ++c) {
                        const std::size_t i = r * kStride + c;
                        const double want =
                            c < kCols ? 2 * sides.sum(left, right, r, c) + double{keep} * double{before[i]}
                                      : double{before[i]};
                        CHECK(std::fabs(double{sides.out[i]} - want) <= (c < kCols ? tolerance : 0));
                    }
            }
}

}  // namespace

TEST_CASE("a product of parts is that of float64, and what lies between its rows stays") {
    check_products<float>(2e-5);
    check_products<double>(1e-13);
}

TEST_CASE("a product that keeps nothing of its output does not read it") {
    Sides<float> sides;
    for (float& value : sides.out) value = std::numeric_limits<float>::quiet_NaN();
    gemm(kRows, kCols, kDepth, 1.0F, {{sides.left.data(), kStride}}, {{sides.right.data(), kStride}}, 0.0F,
         {sides.out.data(), kStride});
    for (std::size_t r = 0; r < kRows; ++r)
        for (std::size_t c = 0; c < kCols; ++c) CHECK(std::isfinite(sides.out[r * kStride + c]));
}
