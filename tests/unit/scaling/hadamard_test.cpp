#include "core/scaling/hadamard.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/threads/parallel.h"

using namespace fp8lab;

namespace {

using Values = std::vector<float>;

Values integers(std::size_t n, std::uint64_t seed) {  // -2^16 .. 2^16
    Rng rng(seed);
    Values values(n);
    for (float& v : values) v = static_cast<float>(static_cast<int>(rng.below(131073)) - 65536);
    return values;
}

Values transposed(const Values& x, std::size_t rows, std::size_t cols) {
    Values out(x.size());
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < cols; ++c) out[c * rows + r] = x[r * cols + c];
    return out;
}

std::size_t differing_bits(const Values& a, const Values& b) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        n += std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i]);
    return n;
}

// (-1)^(number of common ones of k and j): Sylvester's matrix.
double sylvester(std::size_t k, std::size_t j) { return std::popcount(k & j) % 2 == 0 ? 1 : -1; }

}  // namespace

TEST_CASE("integers up to 2^16 come back bit for bit, along rows and along columns, in place and not") {
    for (const RhtSigns& signs : {te_signs(), no_signs(), drawn_signs(1), drawn_signs(99)})
        for (const Along along : {Along::cols, Along::rows})
            for (const std::uint64_t seed : {1U, 2U, 3U}) {
                constexpr std::size_t kRows = 208, kCols = 112;
                const Values x = integers(kRows * kCols, seed);
                Values y(x.size()), back(x.size()), same = x;
                rotate(x, y, kRows, kCols, along, signs);
                rotate_back(y, back, kRows, kCols, along, signs);
                CHECK(differing_bits(back, x) == 0);
                CHECK(differing_bits(y, x) > x.size() / 2);
                rotate(same, same, kRows, kCols, along, signs);
                CHECK(differing_bits(same, y) == 0);
                rotate_back(same, same, kRows, kCols, along, signs);
                CHECK(differing_bits(same, x) == 0);
            }
}

TEST_CASE("it is x diag(s) H16 / 4, written out") {
    const RhtSigns signs = te_signs();
    const Values x = integers(64, 5);
    Values y(x.size());
    rotate(x, y, 2, 32, Along::cols, signs);
    for (std::size_t group = 0; group < 4; ++group)
        for (std::size_t j = 0; j < 16; ++j) {
            double sum = 0;
            for (std::size_t k = 0; k < 16; ++k)
                sum +=
                    static_cast<double>(x[group * 16 + k]) * static_cast<double>(signs[k]) * sylvester(k, j);
            CHECK(static_cast<double>(y[group * 16 + j]) == sum / 4);
        }
}

TEST_CASE("along rows it is the transform of the transposed matrix, on any number of threads") {
    constexpr std::size_t kRows = 320, kCols = 333;
    Values x(kRows * kCols), y(x.size()), across(x.size()), again(x.size());
    Rng(7).fill_normal(x);
    rotate(x, y, kRows, kCols, Along::rows, te_signs());
    rotate(transposed(x, kRows, kCols), across, kCols, kRows, Along::cols, te_signs());
    CHECK(differing_bits(transposed(across, kCols, kRows), y) == 0);
    const int before = threads();
    set_threads(before == 1 ? 4 : 1);
    rotate(x, again, kRows, kCols, Along::rows, te_signs());
    set_threads(before);
    CHECK(differing_bits(again, y) == 0);
}

TEST_CASE("a product of two rotated operands is the product: with padding by zeros, which is kept") {
    // dW = dy^T x over 37 samples, padded to 48.
    constexpr std::size_t kBatch = 37, kOut = 5, kIn = 7;
    Values dy = integers(kBatch * kOut, 1), x = integers(kBatch * kIn, 2);
    const auto product = [&](std::size_t samples, const Values& a, const Values& b) {
        std::vector<double> dw(kOut * kIn);
        for (std::size_t n = 0; n < samples; ++n)
            for (std::size_t o = 0; o < kOut; ++o)
                for (std::size_t i = 0; i < kIn; ++i)
                    dw[o * kIn + i] +=
                        static_cast<double>(a[n * kOut + o]) * static_cast<double>(b[n * kIn + i]);
        return dw;
    };
    const std::vector<double> plain = product(kBatch, dy, x);
    constexpr std::size_t kPadded = rht_padded(kBatch);
    static_assert(kPadded == 48 && rht_padded(48) == 48 && rht_padded(1) == 16 && rht_padded(0) == 0);
    dy.resize(kPadded * kOut, 0.0F);
    x.resize(kPadded * kIn, 0.0F);
    rotate(dy, dy, kPadded, kOut, Along::rows, te_signs());
    rotate(x, x, kPadded, kIn, Along::rows, te_signs());
    CHECK(product(kPadded, dy, x) == plain);
    CHECK(product(kBatch, dy, x) != plain);  // without what was padded
    Values not_rotated = integers(kBatch * kIn, 2);
    not_rotated.resize(kPadded * kIn, 0.0F);
    CHECK(product(kPadded, dy, not_rotated) != plain);  // one operand alone
}

TEST_CASE("signs: Transformer Engine's, none, and drawn ones that a seed repeats") {
    CHECK(te_signs() == RhtSigns{1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1});
    CHECK(drawn_signs(4) == drawn_signs(4));
    int ones = 0;
    for (std::uint64_t seed = 1; seed <= 99; ++seed) {
        for (const float s : drawn_signs(seed)) {
            CHECK(std::fabs(s) == 1);
            ones += s == 1;
        }
        CHECK(drawn_signs(seed) != drawn_signs(seed + 1));
    }
    CHECK(std::abs(ones - 99 * 8) <= 60);  // 3 standard errors of a fair coin
    CHECK(no_signs() == RhtSigns{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
}

TEST_CASE("an extent that is no multiple of 16 and spans of another size are refused") {
    Values x(15 * 32), out(15 * 32);
    CHECK_THROWS_WITH_AS(rotate(x, out, 32, 15, Along::cols, te_signs()),
                         "rotate: 15 columns are not a multiple of 16", Error);
    CHECK_THROWS_WITH_AS(rotate_back(x, out, 15, 32, Along::rows, te_signs()),
                         "rotate: 15 rows are not a multiple of 16", Error);
    CHECK_NOTHROW(rotate(x, out, 32, 15, Along::rows, te_signs()));
    CHECK_THROWS_AS(rotate(x, out, 16, 32, Along::cols, te_signs()), Error);
    out.pop_back();
    CHECK_THROWS_AS(rotate(x, out, 32, 15, Along::rows, te_signs()), Error);
    CHECK_NOTHROW(rotate({}, {}, 0, 16, Along::cols, te_signs()));
}
