// Casts that results, evidence and recordings rest on: they must not change by a bit. The checksums were written by
// the version before the options of four bits came (w2d, rht, target, wide).
#include <doctest/doctest.h>

#include <bit>
#include <string>
#include <vector>

#include "core/base/rng.h"
#include "core/scaling/quantizer.h"

using namespace fp8lab;

namespace {

// Of the results and the scales of x, w and dy along both dimensions: 90 x 150 normal values, some of them 0, 1000
// times larger or 2^-20 as large, with partial blocks of every recipe.
std::uint64_t checksum_of(const std::string& text) {
    constexpr std::size_t kRows = 90, kCols = 150;
    std::vector<float> x(kRows * kCols), out(x.size());
    Rng(11).fill_normal(x);
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (i % 97 == 5) x[i] = 0;
        if (i % 389 == 7) x[i] *= 1000;
        if (i / kCols == 40) x[i] *= 0x1p-20F;
    }
    const Recipe recipe = parse_recipe(text);
    std::uint64_t h = 0xCBF29CE484222325ULL;
    const auto add = [&](float value) {
        for (int byte = 0; byte < 4; ++byte)
            h = (h ^ (std::bit_cast<std::uint32_t>(value) >> 8 * byte & 255)) * 0x100000001B3ULL;
    };
    for (const TensorClass tensor : {TensorClass::x, TensorClass::w, TensorClass::dy})
        for (const Along along : {Along::cols, Along::rows}) {
            const QuantizeResult result =
                quantize(cast_plan(recipe, tensor), x, out,
                         {.rows = kRows, .cols = kCols, .along = along, .seed = 3, .stream = 17});
            for (const float value : out) add(value);
            for (const float scale : result.scales) add(scale);
            add(result.scale);
        }
    return h;
}

struct Recorded {
    const char* recipe;
    std::uint64_t checksum;
};
constexpr Recorded kRecorded[] = {
    {"fp32", 0x8c860892d1ba1841ULL},
    {"bf16", 0x61720033d33ca82dULL},
    {"delayed", 0xfde800dea5164335ULL},
    {"current", 0xfde800dea5164335ULL},
    {"rowwise", 0x2336813803b9365eULL},
    {"block128", 0xfa935648414d6d85ULL},
    {"mxfp8", 0xcfa4cfe9ee4b3fe8ULL},
    {"mxfp6-e2m3", 0x2237225d1737f2caULL},
    {"mxfp6-e3m2", 0x0c26bf5def3d1ea6ULL},
    {"mxfp4", 0x499a7531c9d3c844ULL},
    {"nvfp4", 0xc11f7a158f0de73eULL},
    {"int8", 0x7e45b59a11c85275ULL},
    {"unscaled", 0xda2c9731d9fac925ULL},
    {"mxfp4:mxrule=floor:round=stochastic", 0xbe1c2b238aa8a8f4ULL},
    {"nvfp4:round=stochastic", 0xb11313bb750fc72aULL},
    {"nvfp4:round_bwd=nearest", 0x1d16e5bcb63204f1ULL},
    {"block128:pow2=0:margin=1", 0x1921ab5f3f9571edULL},
    {"mxfp8:mxrule=even", 0xe9af4c7a5c32bc35ULL},
    {"delayed:bwd=bf16", 0xa8f9f008f81de5a5ULL},
};

}  // namespace

TEST_CASE("the casts of every recipe are the recorded ones, bit for bit") {
    for (const Recorded& r : kRecorded) {
        CAPTURE(r.recipe);
        CHECK(checksum_of(r.recipe) == r.checksum);
    }
}
