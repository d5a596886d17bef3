#include "core/scaling/code_layouts.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/formats/codec.h"
#include "core/threads/parallel.h"

using namespace fp8lab;

namespace {

using Values = std::vector<float>;

// Student's t with 5 degrees of freedom and rows of different size, as weights are.
Values weights(std::uint64_t seed, std::size_t rows, std::size_t cols, float size = 0.02F) {
    Rng rng(seed);
    Values z(rows * cols), v(5 * rows * cols), spread(rows);
    rng.fill_normal(z, size);
    rng.fill_normal(v, 1);
    rng.fill_normal(spread, 0.5F);
    for (std::size_t i = 0; i < z.size(); ++i) {
        float chi = 0;
        for (std::size_t k = 0; k < 5; ++k) chi += v[5 * i + k] * v[5 * i + k];
        z[i] *= std::exp2(spread[i / cols]) / std::sqrt(chi / 5);
    }
    return z;
}

Values decoded(const CodeLayout& layout, const CodedMatrix& coded, std::size_t cols) {
    Values out(coded.codes.size());
    decode_layout(layout, coded, cols, out);
    return out;
}

double relative(const Values& w, const Values& x) {
    double error = 0, all = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
        error += std::pow(static_cast<double>(w[i]) - static_cast<double>(x[i]), 2);
        all += std::pow(static_cast<double>(w[i]), 2);
    }
    return std::sqrt(error / all);
}

}  // namespace

TEST_CASE("Code layouts: the values are those of quantize()") {
    // But for the 21 bits of a stored scale, 2^-21, and the last bits of a division.
    for (const CodeLayout& layout : code_layouts())
        for (const auto& [rows, cols] : {std::pair<std::size_t, std::size_t>{256, 128}, {200, 96}, {1, 64}}) {
            CAPTURE(layout.name);
            CAPTURE(rows);
            const Values w = weights(3, rows, cols);
            const CodedMatrix coded = cast_to_layout(layout, w, rows, cols);
            Values expected(w.size());
            quantize(layout.plan(), w, expected, {.rows = rows, .cols = cols});
            const Values values = decoded(layout, coded, cols);
            double apart = 0;
            for (std::size_t i = 0; i < w.size(); ++i)
                apart = std::max(
                    apart, std::fabs(static_cast<double>(values[i]) - static_cast<double>(expected[i])) /
                               std::max(1e-30, std::fabs(static_cast<double>(expected[i]))));
            CHECK(apart <= (layout.scales == "F8_E8M0" ? 0 : 6e-7));
            CHECK(coded.scales.size() == layout.scale_rows(rows) * layout.scale_cols(cols));
            CHECK(coded.scale_codes.size() == (layout.scales == "F32" ? 0 : coded.scales.size()));
        }
}

TEST_CASE("Code layouts: stored scales are what the table says, by hand") {
    // Row 0 has amax 6, row 1 amax 0.75.
    Values w(64, 0.5F);
    w[3] = -6;
    w[32 + 5] = 0.75F;
    const auto of = [&](const char* name) { return cast_to_layout(find_code_layout(name), w, 2, 32); };
    // 3/224 = 1.714285714 x 2^-7; with 21 bits 1797559 / 2^20 x 2^-7.
    CHECK(of("e4m3-tensor").scales == Values{1797559 / 1048576.F / 128});
    CHECK(of("e4m3-row").scales == Values{1797559 / 1048576.F / 128, 1797559 / 1048576.F / 1024});
    CHECK(of("e4m3-block128").scales.size() == 1);
    CHECK(of("mxfp8").scale_codes == std::vector<std::uint8_t>{127 - 6, 127 - 9});  // 6/448 and 0.75/448, up
    CHECK(of("mxfp4").scale_codes == std::vector<std::uint8_t>{127, 127 - 3});      // 6/6, 0.75/6
    const CodedMatrix nvfp4 = of("nvfp4");
    CHECK(nvfp4.global == 448);  // 2688 / 6
    // 448 = 0x7E; 0.5 / 6 x 448 = 37.3, to 36 = 0x61; 0.75 / 6 x 448 = 56 = 0x66.
    CHECK(nvfp4.scale_codes == std::vector<std::uint8_t>{0x7E, 0x61, 0x66, 0x61});
    CHECK(nvfp4.codes[3] == 0xF);             // -6
    CHECK(nvfp4.codes[0] == 0x1);             // 0.5
    CHECK(nvfp4.codes[16] == 0x7);            // 0.5 / (36 / 448) = 6.2
    CHECK(nvfp4.codes[32 + 5] == 0x7);        // 0.75 / (56 / 448) = 6
    CHECK(nvfp4.codes[32] == 0x6);            // 4
    CHECK(of("e4m3-row").codes[3] == 0xFE);   // -448
    CHECK(of("e4m3-row").codes[37] == 0x7E);  // 448
}

TEST_CASE("Code layouts: parts under the amax of the whole are the whole, on any number of threads") {
    const std::size_t rows = 300, cols = 160;
    const Values w = weights(4, rows, cols);
    for (const CodeLayout& layout : code_layouts()) {
        CAPTURE(layout.name);
        set_threads(1);
        const CodedMatrix whole = cast_to_layout(layout, w, rows, cols);
        set_threads(3);
        CodedMatrix parts;
        for (std::size_t r = 0; r < rows; r += 128) {
            const std::size_t n = std::min<std::size_t>(128, rows - r);
            const CodedMatrix part =
                cast_to_layout(layout, std::span(w).subspan(r * cols, n * cols), n, cols, amax(w));
            parts.codes.insert(parts.codes.end(), part.codes.begin(), part.codes.end());
            if (layout.granularity != Granularity::tensor || r == 0)
                parts.scales.insert(parts.scales.end(), part.scales.begin(), part.scales.end());
            CHECK(part.global == whole.global);
        }
        CHECK(parts.codes == whole.codes);
        CHECK(parts.scales == whole.scales);
    }
    set_threads(0);
}

TEST_CASE("Code layouts: a second cast of the values changes none, and the errors are those of the formats") {
    for (const CodeLayout& layout : code_layouts())
        for (std::uint64_t seed = 1; seed <= 5; ++seed) {
            CAPTURE(layout.name);
            CAPTURE(seed);
            const std::size_t rows = 256, cols = 512;
            const Values w = weights(seed, rows, cols);
            const Values once = decoded(layout, cast_to_layout(layout, w, rows, cols), cols);
            const Values twice = decoded(layout, cast_to_layout(layout, once, rows, cols), cols);
            CHECK(once == twice);
            const double error = relative(w, once);
            CHECK(error < (!layout.is_fp4() ? 0.030 : layout.has_global ? 0.105 : 0.150));
            CHECK(error > (!layout.is_fp4() ? 0.020 : layout.has_global ? 0.080 : 0.110));
        }
}

TEST_CASE("Code layouts: zeros, an odd number of FP4 codes, an unknown name") {
    for (const CodeLayout& layout : code_layouts()) {
        CAPTURE(layout.name);
        const Values none(96, 0.F);
        CHECK(decoded(layout, cast_to_layout(layout, none, 3, 32), 32) == none);
        CHECK_THROWS_AS(cast_to_layout(layout, none, 3, 31), Error);
    }
    CHECK(pack_fp4(std::vector<std::uint8_t>{1, 2, 0xF, 7}) == std::vector<std::uint8_t>{0x21, 0x7F});
    CHECK_THROWS_AS(pack_fp4(std::vector<std::uint8_t>{1}), Error);
    CHECK_THROWS_AS(find_code_layout("int8"), Error);
}
