#include "core/base/rng.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/base/normals.h"

using namespace fp8lab;

TEST_CASE("Philox gives the known answers of the Random123 distribution") {
    // kat_vectors, philox 4 32 10: counter and key all zeros, all ones, and digits of pi.
    using Block = std::array<std::uint32_t, 4>;
    CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) == Block{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u});
    CHECK(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) ==
          Block{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu});
    CHECK(philox4x32({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u}) ==
          Block{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u});
}

TEST_CASE("the sequential generator and the random access agree") {
    Rng rng(0x123456789abcdefull, 77);
    for (std::uint64_t i = 0; i < 1000; ++i) CHECK(rng.bits() == random_bits(0x123456789abcdefull, 77, i));
    for (const std::uint64_t from : std::initializer_list<std::uint64_t>{8, 3, 6, 0x400000001}) {
        rng.normal();  // keeps a spare that the place sought knows nothing of
        rng.seek(from);
        for (std::uint64_t i = from; i < from + 9; ++i)
            CHECK(rng.bits() == random_bits(0x123456789abcdefull, 77, i));
        rng.seek(from);
        Rng fresh(0x123456789abcdefull, 77);
        fresh.seek(from);
        CHECK(rng.normal() == fresh.normal());
    }
}

TEST_CASE("random bits of a span are those of each index, wherever it starts and whatever its length") {
    for (const std::uint64_t first : std::initializer_list<std::uint64_t>{0, 1, 6, 0x3FFFFFFFF})
        for (const std::size_t n : {0, 1, 3, 4, 5, 1021, 1024, 3000}) {
            std::vector<std::uint32_t> found(n + 1, 7);
            random_bits(5, 0x100000002, first, std::span(found).first(n));
            for (std::size_t i = 0; i < n; ++i) REQUIRE(found[i] == random_bits(5, 0x100000002, first + i));
            CHECK(found[n] == 7);
        }
}

TEST_CASE("fill_normal gives the numbers of normal(), wherever it starts and whatever its length") {
    for (const int before : {0, 1, 2, 5})
        for (const int words : {0, 1, 3})  // a start inside a block of four
            for (const std::size_t n : {0, 1, 2, 3, 40'001, 50'000}) {
                Rng one_by_one(7, 3), at_once(7, 3);
                for (int i = 0; i < words; ++i) CHECK(one_by_one.bits() == at_once.bits());
                for (int i = 0; i < before; ++i) CHECK(one_by_one.normal() == at_once.normal());
                std::vector<float> expected(n), found(n);
                for (float& x : expected) x = 0.3F * one_by_one.normal();
                at_once.fill_normal(found, 0.3F);
                CHECK(found == expected);
                CHECK(at_once.normal() == one_by_one.normal());
                CHECK(at_once.bits() == one_by_one.bits());
            }
}

TEST_CASE(
    "normals are Box-Muller pairs of float64: at most the neighbour of what libm gives, and that rarely") {
    constexpr std::size_t kPairs = 1'000'000;
    Rng uniforms(11, 2);
    std::vector<float> found(2 * kPairs);
    Rng(11, 2).fill_normal(found);
    std::size_t others = 0;
    for (std::size_t i = 0; i < kPairs; ++i) {
        const double u = 1.0 - uniforms.uniform(), v = uniforms.uniform();
        const double radius = std::sqrt(-2 * std::log(u)), angle = 2 * std::numbers::pi * v;
        const std::array expected = {static_cast<float>(radius * std::cos(angle)),
                                     static_cast<float>(radius * std::sin(angle))};
        for (std::size_t k = 0; k < 2; ++k) {
            const float x = found[2 * i + k];
            others += x != expected[k];
            const bool near =
                std::nextafter(x, -9.0F) <= expected[k] && expected[k] <= std::nextafter(x, 9.0F);
            REQUIRE(near);
        }
    }
    CHECK(others < 10);  // about 4 ulp of float64 in 2^29 of them, in 2 million numbers
}

TEST_CASE("the ends of Box-Muller's range: ln 1, the smallest u, a turn in eighths") {
    CHECK(normal_pair(1, 0.3) == std::array{0.0F, 0.0F});
    const double largest = std::sqrt(2 * 53 * std::numbers::ln2);
    for (int eighth = 0; eighth < 8; ++eighth) {
        const double angle = std::numbers::pi / 4 * eighth;
        const auto [cosine, sine] = normal_pair(0x1p-53, eighth / 8.0);
        CHECK(cosine == doctest::Approx(largest * std::cos(angle)).epsilon(1e-7));
        CHECK(sine == doctest::Approx(largest * std::sin(angle)).epsilon(1e-7));
    }
}

TEST_CASE("normals have mean 0, variance 1 and the tails of a Gaussian") {
    Rng rng(5);
    std::vector<float> x(1'000'000);
    rng.fill_normal(x);
    double sum = 0, squares = 0;
    int beyond3 = 0;
    for (const float v : x) {
        sum += double{v};
        squares += double{v} * double{v};
        beyond3 += std::fabs(v) > 3;
    }
    CHECK(std::fabs(sum / 1e6) < 4e-3);  // 4 standard errors
    CHECK(std::fabs(squares / 1e6 - 1) < 6e-3);
    CHECK(std::fabs(beyond3 - 2699.8) < 4 * 52);  // 2 (1 - Phi(3)) n
}

TEST_CASE("below(n) is uniform and stays below n") {
    Rng rng(9);
    std::vector<int> counts(7);
    for (int i = 0; i < 70000; ++i) ++counts.at(rng.below(7));
    for (const int count : counts) CHECK(std::abs(count - 10000) < 400);
}
