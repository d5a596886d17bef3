// NVFP4 and MXFP4 with every switch, against numpy (four_bits/oracle.py, written from Transformer Engine's
// documentation), and what stochastic rounding promises.
#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/scaling/block_scales.h"
#include "core/scaling/hadamard.h"
#include "core/scaling/quantizer.h"

using namespace fp8lab;

namespace {

using Values = std::vector<float>;
using Bytes = std::vector<std::uint8_t>;
const std::string kFolder = std::string(FP8LAB_SOURCE) + "/tests/unit/scaling/four_bits/";
constexpr std::array kKinds = {"normal", "laplace", "student_t", "lognormal", "swiglu_h", "outlier_channel"};
constexpr std::size_t kQuantiles = 4096;

Bytes file(const std::string& name) {
    std::ifstream in(kFolder + name, std::ios::binary);
    REQUIRE(in);
    return {std::istreambuf_iterator<char>(in), {}};
}

// oracle.py, matrix().
Values matrix(const std::string& kind, std::size_t rows, std::size_t cols) {
    static const Bytes quantiles = file("quantiles.bin");
    REQUIRE(quantiles.size() == kKinds.size() * kQuantiles * 2);
    std::size_t table = 0;
    while (kind != kKinds.at(table)) ++table;
    Values x(rows * cols);
    for (std::size_t i = 0; i < x.size(); ++i) {
        std::uint64_t h = (i + 1) * 0x9E3779B97F4A7C15ULL;
        h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9ULL;
        h = (h ^ (h >> 27)) * 0x94D049BB133111EBULL;
        h ^= h >> 31;
        const std::size_t at = (table * kQuantiles + h % kQuantiles) * 2;
        const auto bits = static_cast<std::uint32_t>(quantiles[at] | quantiles[at + 1] << 8) << 16;
        x[i] = std::bit_cast<float>(bits) * (1 + static_cast<float>(h >> 12 & 1023) / 8192);
        if (kind == "outlier_channel" && i % cols % 16 == 3) x[i] *= 30;
    }
    return x;
}

std::uint64_t checksum(const Bytes& bytes) {
    std::uint64_t h = 0xCBF29CE484222325ULL;
    for (const std::uint8_t byte : bytes) h = (h ^ byte) * 0x100000001B3ULL;
    return h;
}

// "nvfp4 1x16 4or6 rht cols": how a matrix is cast.
struct Configuration {
    CastPlan plan;
    bool rht = false;
    Along along = Along::cols;
};

Configuration configuration(const std::string& text) {
    std::istringstream words(text);
    std::string name, block, how, rht, along;
    words >> name >> block >> how >> rht >> along;
    const bool nv = name == "nvfp4", square = block == "16x16";
    const std::string recipe = nv ? "nvfp4:target=" + how + (square ? ":w2d=1" : "") : "mxfp4:mxrule=" + how;
    return {cast_plan(parse_recipe(recipe), square ? TensorClass::w : TensorClass::x), rht == "rht",
            along == "rows" ? Along::rows : Along::cols};
}

struct CodesAndScales {
    Bytes codes, scales;
    std::size_t off_grid = 0;  // values that are no code times the unit of their block
};

// Of what quantize() gives back: the code of a value is found from the value and the unit of its block.
CodesAndScales cast(const Configuration& how, const Values& matrix, std::size_t rows, std::size_t cols) {
    Values x = matrix;
    if (how.rht && how.along == Along::rows) x.resize((rows = rht_padded(rows)) * cols, 0.0F);
    if (how.rht && how.along == Along::cols && cols % 16 != 0) {
        const std::size_t wide = rht_padded(cols);
        x.assign(rows * wide, 0.0F);
        for (std::size_t i = 0; i < matrix.size(); ++i) x[i / cols * wide + i % cols] = matrix[i];
        cols = wide;
    }
    if (how.rht) rotate(x, x, rows, cols, how.along, te_signs());
    const QuantizeRequest request{.rows = rows, .cols = cols, .along = how.along, .with_stats = false};
    Values out(x.size());
    const QuantizeResult result = quantize(how.plan, x, out, request);
    const BlockGrid grid = block_grid(how.plan, rows, cols, how.along);
    CodesAndScales found;
    Values units;
    if (how.plan.granularity == Granularity::block16) {
        Nvfp4Blocks blocks = nvfp4_blocks(how.plan, x, request);
        units = std::move(blocks.units);
        found.scales = std::move(blocks.codes);
        for (std::size_t i = 0; i < units.size(); ++i)
            found.off_grid += result.scales[i] != nvfp4_scales(blocks.tensor_amax, blocks.amaxes[i],
                                                               how.plan.target, blocks.targets[i])
                                                      .block_factor;
    } else {
        for (const float scale : result.scales) {
            units.push_back(1 / scale);
            found.scales.push_back(static_cast<std::uint8_t>(std::ilogb(1 / scale) + 127));
        }
    }
    const FormatInfo& e2m1 = find_format("e2m1");
    for (std::size_t i = 0; i < x.size(); ++i) {
        const float unit = units[i / cols / grid.height * grid.across + i % cols / grid.width];
        const float q = out[i];
        const auto code = static_cast<std::uint8_t>(encode(e2m1, unit == 0 ? 0.0F : std::fabs(q) / unit) |
                                                    (std::signbit(q) ? 8U : 0U));
        found.off_grid += decode(e2m1, code) * unit != q;
        found.codes.push_back(code);
    }
    return found;
}

struct Expected {
    std::string data, cast;
    std::size_t rows = 0, cols = 0;
    std::uint64_t codes = 0, scales = 0;
};

std::vector<Expected> expected() {
    std::ifstream in(kFolder + "checksums.csv");
    std::vector<Expected> list;
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line)) {
        std::vector<std::string> cells;
        std::istringstream split(line);
        for (std::string cell; std::getline(split, cell, ',');) cells.push_back(cell);
        REQUIRE(cells.size() == 6);
        list.push_back({cells[0], cells[3], std::stoul(cells[1]), std::stoul(cells[2]),
                        std::stoull(cells[4], nullptr, 16), std::stoull(cells[5], nullptr, 16)});
    }
    return list;
}

void compare_checksums(std::size_t side, std::size_t wanted) {
    std::size_t compared = 0;
    std::string kind;
    Values x;
    for (const Expected& e : expected()) {
        if (e.rows != side) continue;
        if (kind != e.data) x = matrix(kind = e.data, side, side);
        CAPTURE(e.data);
        CAPTURE(e.cast);
        const CodesAndScales found = cast(configuration(e.cast), x, side, side);
        CHECK(found.off_grid == 0);
        CHECK(checksum(found.scales) == e.scales);
        CHECK(checksum(found.codes) == e.codes);
        ++compared;
    }
    CHECK(compared == wanted);
}

}  // namespace

TEST_CASE("codes and scales are numpy's: 2^16 values of six kinds, value by value") {
    const Bytes whole = file("codes.bin");
    std::size_t at = 0;
    for (const std::string kind : kKinds) {
        const Values x = matrix(kind, 256, 256);
        for (const std::string text :
             {"nvfp4 1x16 6 plain cols", "mxfp4 1x32 up plain cols", "nvfp4 16x16 4or6 rht cols"}) {
            CAPTURE(kind);
            CAPTURE(text);
            const CodesAndScales found = cast(configuration(text), x, 256, 256);
            REQUIRE(at + found.codes.size() / 2 + found.scales.size() <= whole.size());
            std::size_t wrong_codes = 0, wrong_scales = 0;
            for (std::size_t i = 0; i < found.codes.size(); i += 2, ++at)
                wrong_codes += whole[at] != (found.codes[i] | found.codes[i + 1] << 4);
            for (const std::uint8_t scale : found.scales) wrong_scales += whole[at++] != scale;
            CHECK(wrong_scales == 0);
            CHECK(wrong_codes == 0);
        }
    }
    CHECK(at == whole.size());
}

TEST_CASE("codes and scales are numpy's: every switch, 2^16 values of six kinds") {
    compare_checksums(256, 6 * 36);
}

TEST_CASE("codes and scales are numpy's: a million values of six kinds, with partial blocks") {
    compare_checksums(1000, 6 * 6);
}

// Element by element x / unit = v lies between two codes lo and hi. Stochastic rounding takes hi with probability
// (v - lo) / (hi - lo), so the mean of the results is v and their variance (hi - v)(v - lo), in units. Elements
// above 6 units always become 6: the bias that is left in NVFP4.
TEST_CASE("stochastic rounding: gain and variance are those of theory, and the bias is the clipping's") {
    constexpr std::uint64_t kDraws = 64;
    constexpr std::size_t kSide = 256;
    const FormatInfo& e2m1 = find_format("e2m1");
    for (const std::string kind : kKinds)
        for (const std::string text :
             {"nvfp4 1x16 6 plain cols", "nvfp4 16x16 6 plain cols", "nvfp4 1x16 4 plain cols",
              "nvfp4 1x16 6 rht cols", "mxfp4 1x32 up plain cols"}) {
            CAPTURE(kind);
            CAPTURE(text);
            Configuration how = configuration(text);
            how.plan.rounding = Rounding::stochastic;
            Values x = matrix(kind, kSide, kSide);
            if (how.rht) rotate(x, x, kSide, kSide, how.along, te_signs());
            QuantizeRequest request{.rows = kSide, .cols = kSide, .seed = 1, .with_stats = false};
            const BlockGrid grid = block_grid(how.plan, kSide, kSide, how.along);
            const BlockScales scales = block_scales(how.plan, x, kSide, grid, request);
            struct Theory {
                double mean = 0, unit = 0, variance = 0, fourth = 0;  // fourth central moment
                bool clips = false;
            };
            std::vector<Theory> theory;
            double energy = 0, gain_variance = 0, variance_sum = 0, variance_variance = 0, clipped = 0,
                   rounding = 0;
            for (std::size_t i = 0; i < x.size(); ++i) {
                const std::size_t block = i / kSide / grid.height * grid.across + i % kSide / grid.width;
                const double v = std::fabs(static_cast<double>(x[i] * scales.scale[block])),
                             unit = static_cast<double>(scales.scale_inv[block]);
                Theory t{.mean = v, .unit = unit, .clips = v > 6};
                const double xi = static_cast<double>(x[i]);
                energy += xi * xi;
                if (t.clips) {
                    clipped += std::fabs(xi) * 6 * unit - xi * xi;
                    rounding += std::fabs(xi) * 6 * unit * 0x1p-24;
                } else if (v < 6) {
                    const double lo = static_cast<double>(decode(
                                     e2m1, encode(e2m1, static_cast<float>(v), Rounding::toward_zero))),
                                 hi = lo < 2   ? lo + 0.5
                                      : lo < 4 ? lo + 1
                                               : 6,
                                 p = (v - lo) / (hi - lo), step2 = (hi - lo) * (hi - lo);
                    t.variance = p * (1 - p) * step2;
                    t.fourth = p * (1 - p) * (1 - 3 * p + 3 * p * p) * step2 * step2;
                    gain_variance += xi * xi * t.variance * unit * unit;
                    variance_sum += t.variance;
                    variance_variance += t.fourth - t.variance * t.variance;
                }
                theory.push_back(t);
            }
            double product = 0, clipped_product = 0, squares = 0, expected_product = 0;
            for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
                request.stream = draw + 1;
                Values out(x.size());
                quantize(how.plan, x, out, request);
                for (std::size_t i = 0; i < x.size(); ++i) {
                    const Theory& t = theory[i];
                    const double xi = static_cast<double>(x[i]), q = static_cast<double>(out[i]);
                    if (t.clips) {
                        clipped_product += xi * q - xi * xi;
                    } else {
                        product += xi * q;
                        expected_product += std::fabs(xi) * t.mean * t.unit;
                        const double d = t.unit == 0 ? 0 : std::fabs(q) / t.unit - t.mean;
                        squares += d * d;
                    }
                }
            }
            constexpr double n = kDraws;
            CHECK(std::fabs(product - expected_product) / (n * energy) <=
                  3 * std::sqrt(gain_variance / n) / energy);
            CHECK(std::fabs(squares / n - variance_sum) <= 3 * std::sqrt(variance_variance / n));
            // What clips is not random.
            CHECK(std::fabs(clipped_product / n - clipped) <= rounding);  // of 6 units to FP32
            // 4 leaves room above: the amax of a block becomes 4.4 units at most.
            const bool may_clip = text.find(" 6 ") != text.npos;
            CHECK((clipped < 0) == may_clip);
        }
}
