// INT4 and NF4 with a scale per group, against a search through all levels.
#include "core/formats/group_codes.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/base/rng.h"

using namespace fp8lab;

namespace {

// The nearest of all levels; of two as near the one with the even index.
float searched(const GroupCodes& codes, float value) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < codes.levels.size(); ++i) {
        const double now = std::fabs(static_cast<double>(codes.levels[i]) - static_cast<double>(value)),
                     before = std::fabs(static_cast<double>(codes.levels[best]) - static_cast<double>(value));
        if (now < before || (now == before && i % 2 == 0)) best = i;
    }
    return codes.levels[best];
}

const GroupCodes& codes_of(std::string_view id) {
    for (const GroupCodes& codes : group_codes())
        if (codes.id == id) return codes;
    FAIL("no such codes");
    return group_codes().front();
}

}  // namespace

TEST_CASE("a value goes to the nearest of the sixteen levels, ties to the even code") {
    for (const GroupCodes& codes : group_codes()) {
        CAPTURE(codes.id);
        REQUIRE(codes.levels.size() == 16);
        Rng rng(3);
        for (const float level : codes.levels) CHECK(nearest_level(codes, level) == level);
        for (int i = 0; i < 20000; ++i) {
            const float value = 1.3F * codes.largest * rng.normal();
            REQUIRE(nearest_level(codes, value) == searched(codes, value));
        }
        for (std::size_t i = 0; i + 1 < 16; ++i) {
            const float middle = (codes.levels[i] + codes.levels[i + 1]) / 2;
            CHECK(nearest_level(codes, middle) == searched(codes, middle));
        }
        CHECK(nearest_level(codes, std::numeric_limits<float>::infinity()) == codes.levels.back());
        CHECK(std::isnan(nearest_level(codes, std::numeric_limits<float>::quiet_NaN())));
    }
    // INT4 as nearbyint does it: the codes are two's complement, an even value has an even code.
    for (float v = -9; v <= 9; v += 0.125F)
        CHECK(nearest_level(codes_of("int4-g32"), v) == std::clamp(std::nearbyint(v), -8.0F, 7.0F));
}

TEST_CASE("a group shares the scale of its amax, and the last group of a row may be shorter") {
    for (const GroupCodes& codes : group_codes()) {
        CAPTURE(codes.id);
        const std::size_t cols = codes.group + 5, rows = 3;
        std::vector<float> in(rows * cols), out(in.size());
        Rng(4).fill_normal(in);
        cast_in_groups(codes, in, out, cols);
        for (std::size_t r = 0; r < rows; ++r)
            for (std::size_t c = 0; c < cols; ++c) {
                float largest = 0;
                const std::size_t first = c < codes.group ? 0 : codes.group,
                                  end = c < codes.group ? codes.group : cols;
                for (std::size_t k = first; k < end; ++k)
                    largest = std::max(largest, std::fabs(in[r * cols + k]));
                const float scale = codes.largest / largest;
                CHECK(out[r * cols + c] == searched(codes, in[r * cols + c] * scale) * (1 / scale));
            }
        std::vector<float> again = out;
        cast_in_groups(codes, std::vector<float>(in.size()), again, cols);
        CHECK(again == std::vector<float>(in.size()));  // zeros stay
        cast_in_groups(codes, in, in, cols);            // in place
        CHECK(in == out);
    }
}

TEST_CASE("bits per element with the scales") {
    CHECK(codes_of("int4-g32").bits_per_element(64) == 4.5);
    CHECK(codes_of("int4-g128").bits_per_element(128) == 4.125);
    CHECK(codes_of("int4-g128").bits_per_element(64) == 4.25);  // one group, not whole
    CHECK(codes_of("nf4").bits_per_element(64) == 4.5);
}
