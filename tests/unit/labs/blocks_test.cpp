// Oracles: the Gaussian table of numerics.md 5.2, the saturation shares of numerics.md 1.4, the prices
// written out by hand, and loops over single elements.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/files/files.h"
#include "core/tensors/npy.h"
#include "labs/blocks/model.h"
#include "tests/scratch.h"
#include "tests/unit/labs/lesson_numbers.h"

using namespace fp8lab;
using namespace fp8lab::blocks;

namespace {

double number_metric(const BlocksLab& lab, std::string_view name) {
    const auto metrics = lab.metrics();
    const auto it = std::ranges::find(metrics, name, &Metric::name);
    REQUIRE_MESSAGE(it != metrics.end(), name);
    return it->value;
}

void set(BlocksLab& lab, std::initializer_list<std::string_view> assignments) {
    for (const std::string_view assignment : assignments) set_field(lab.fields(), assignment);
    lab.update();
}

struct Made {
    BlocksLab lab;
    Made(std::initializer_list<std::string_view> assignments) { set(lab, assignments); }
    double operator()(std::string_view name) const { return number_metric(lab, name); }
};

}  // namespace

TEST_CASE("on a Gaussian every E4M3 scheme gives the published SQNR, and the floor rule 0.9 dB less") {
    const Made made{"rows=1024", "cols=1024"};
    struct Row {
        const char* name;
        double sqnr, tolerance;
    };
    // Rows of 1024 here, of 1000 there; the 128x128 blocks have no row in the table: between row and 1x128.
    for (const Row& row :
         {Row{"tensor", 31.55, 0.1}, Row{"row", 31.56, 0.1}, Row{"1x128", 31.80, 0.1},
          Row{"128x128", 31.6, 0.1}, Row{"mx32-up", 31.52, 0.1}, Row{"mx32-floor", 30.64, 0.1},
          Row{"mx32-even", 31.18, 0.1}, Row{"nvfp4", 20.43, 0.1}}) {
        CAPTURE(row.name);
        CHECK(std::fabs(made(std::string(row.name) + ".sqnr_db") - row.sqnr) <= row.tolerance);
    }
    CHECK(made("tensor.sqnr_db") - made("mx32-floor.sqnr_db") == doctest::Approx(0.9).epsilon(0.1));
    const Made pow2{"rows=1024", "cols=1024", "scheme=1x128", "pow2=on"};
    CHECK(std::fabs(pow2("1x128.sqnr_db") - 31.52) <= 0.1);
}

TEST_CASE("the floor rule saturates in 16.8 % of a Gaussian's E4M3 blocks, 9.4 % in E2M3, 29.6 % in E2M1") {
    const Tensor tensor = make_tensor({.size = 1, .rows = 1024, .cols = 1024});
    struct Row {
        const char* element;
        double pct;
    };
    // Counted where amax * scale lies beyond the largest value; up to the overflow threshold rounding alone
    // brings it back, so that fewer are changed by saturation.
    for (const Row& row : {Row{"e4m3", 16.8}, Row{"e2m3", 9.4}, Row{"e2m1", 29.6}}) {
        CAPTURE(row.element);
        const FormatInfo& element = find_format(row.element);
        const auto all = schemes(element, false);
        for (const char* id : {"mx32-floor", "mx32-up"}) {
            const auto& scheme = *std::ranges::find(all, id, &Scheme::id);
            const Copy copy = quantized_copy(scheme.plan, tensor, Along::cols);
            std::size_t saturated = 0;
            for (std::size_t block = 0; block < copy.scales.size(); ++block) {
                float largest = 0;
                for (std::size_t i = 32 * block; i < 32 * (block + 1); ++i)
                    largest = std::max(largest, std::fabs(tensor.values[i]));
                saturated += static_cast<double>(largest * copy.scales[block]) > max_finite(element);
            }
            const double pct =
                100.0 * static_cast<double>(saturated) / static_cast<double>(copy.scales.size());
            if (std::string_view(id) == "mx32-up")
                CHECK(pct == 0);
            else
                CHECK(pct == doctest::Approx(row.pct).epsilon(0.02));
        }
    }
}

TEST_CASE("blocks win where rows differ: 3 % become 0 under one scale, none under MX") {
    const Made made{"row_spread=4"};
    CHECK(made("tensor.underflow_pct") >= 3);
    CHECK(made("mx32-up.underflow_pct") <= 0.1);
    CHECK(made("row.underflow_pct") <= 0.1);
    // What became 0 is the smallest of the tensor.
    CHECK(made("tensor.lost_l1_pct") > 0);
    CHECK(made("tensor.lost_l1_pct") < made("tensor.underflow_pct") / 10);
    CHECK(made("tensor.lost_energy_pct") < made("tensor.lost_l1_pct") / 10);
    CHECK(made("tensor.worst_row_db") < 10);
    CHECK(made("mx32-up.worst_row_db") > 30);
    // The SQNR of the whole listens to the large rows and does not tell.
    CHECK(std::fabs(made("tensor.sqnr_db") - made("mx32-up.sqnr_db")) < 1.5);
    CHECK(made.lab.figures().back().title.starts_with("One scale turns "));
    const Made flat{};
    CHECK(flat("tensor.underflow_pct") < 0.1);
    CHECK(flat.lab.figures().back().title.starts_with("More scales buy nothing"));
    const Made four{"element=e2m1"};
    CHECK(four("nvfp4.sqnr_db") > four("tensor.sqnr_db") + 2.5);
    CHECK(four.lab.figures().back().title.starts_with("Finer scales gain up to "));
}

TEST_CASE(
    "one value in a thousand, a thousand times too large, ruins INT8 and FP4 for the others and not E4M3") {
    Tensor tensor = make_tensor({.size = 1, .rows = 1024, .cols = 1024});
    for (std::size_t i = 500; i < tensor.values.size(); i += 1000) tensor.values[i] *= 1000;
    const auto inlier_db = [&](const char* element, const char* id) {
        const auto all = schemes(find_format(element), false);
        const Copy copy = quantized_copy(std::ranges::find(all, id, &Scheme::id)->plan, tensor, Along::cols);
        double signal = 0, noise = 0;
        for (std::size_t i = 0; i < tensor.values.size(); ++i) {
            if (i % 1000 == 500) continue;
            const double x = static_cast<double>(tensor.values[i]),
                         e = x - static_cast<double>(copy.values[i]);
            signal += x * x;
            noise += e * e;
        }
        return 10 * std::log10(signal / noise);
    };
    CHECK(inlier_db("e4m3", "tensor") == doctest::Approx(31.45).epsilon(0.01));
    CHECK(inlier_db("e4m3", "mx32-up") == doctest::Approx(31.58).epsilon(0.01));
    CHECK(std::fabs(inlier_db("int8", "tensor")) < 0.1);
    CHECK(std::fabs(inlier_db("e2m1", "tensor")) < 0.1);
}

TEST_CASE("bits per element are those of element and scales") {
    const Made made{};  // 256 x 256
    const double n = 65536;
    CHECK(made("tensor.bits_per_element") == 8 + 32 / n);
    CHECK(made("row.bits_per_element") == 8 + 32.0 / 256);
    CHECK(made("1x128.bits_per_element") == 8.25);
    CHECK(made("128x128.bits_per_element") == 8 + 4 * 32 / n);
    CHECK(made("128x128.bits_per_element") == doctest::Approx(8.002).epsilon(1e-5));
    CHECK(made("mx32-up.bits_per_element") == 8.25);
    CHECK(made("nvfp4.bits_per_element") == 4.5 + 32 / n);
    CHECK(made("mx32-up.scales") == 2048);
    const Made fp6{"element=e2m3"};
    CHECK(fp6("mx32-up.bits_per_element") == 6.25);
    CHECK(fp6("nvfp4.bits_per_element") == 4.5 + 32 / n);  // always E2M1
}

TEST_CASE("the copies along rows and columns are the same with one scale and with square blocks only") {
    const Made made{"row_spread=4"};
    for (const Contender& contender : made.lab->outcome->contenders) {
        CAPTURE(contender.scheme.id);
        const bool same = contender.scheme.id == "tensor" || contender.scheme.id == "128x128";
        CHECK((contender.score.max_difference == 0) == same);
        CHECK((contender.score.differ_pct == 0) == same);
    }
    CHECK(made("tensor.scales") == 1);
    CHECK(made("128x128.scales") == 4);
    // A power of two moves the exponent only: as long as nothing leaves the window, MX copies are the same
    // too.
    CHECK(Made{}("mx32-up.copies_max_difference") == 0);
    CHECK(Made{}("mx32-floor.copies_max_difference") > 0);
    CHECK(Made{}("row.copies_differ_pct") > 90);
}

TEST_CASE("a block is what its elements say") {
    for (const char* scheme : {"tensor", "row", "1x128", "128x128", "mx32", "nvfp4"}) {
        const Made made{std::string("scheme=") + scheme == "scheme=mx32" ? "rule=floor" : "rule=up",
                        std::string_view(std::string("scheme=") + scheme), "rows=200", "cols=300",
                        "row_spread=6"};
        CAPTURE(scheme);
        const Outcome& outcome = *made.lab->outcome;
        for (const bool by_rows : {false, true}) {
            // Every element belongs to the block it is found in, and the counts of all blocks add up.
            double underflow = 0, saturated = 0;
            std::size_t elements = 0;
            for (std::size_t r = 0; r < 200; ++r)
                for (std::size_t c = 0; c < 300; ++c) {
                    const Copy& copy = by_rows ? outcome.by_rows : outcome.by_cols;
                    if (r % copy.grid.height != 0 || c % copy.grid.width != 0) continue;
                    const Block block = made.lab->block_at(r, c, by_rows);
                    REQUIRE(block.row == r);
                    REQUIRE(block.col == c);
                    underflow += block.underflow;
                    saturated += block.saturated;
                    elements += block.rows * block.cols;
                    // A scale too small for E4M3 is 0: NVFP4 gives the whole block up.
                    if (std::string_view(scheme) != "nvfp4") CHECK(block.top >= block.amax / 2);
                }
            CHECK(elements == 60000);
            const CastStats& stats = (by_rows ? outcome.by_rows : outcome.by_cols).stats;
            CHECK(underflow == static_cast<double>(stats.underflow));
            CHECK(saturated == static_cast<double>(stats.overflow));
        }
    }
}

TEST_CASE("the maps show every element once, partial cells included") {
    const Made made{"scheme=mx32", "rows=100", "cols=150", "row_spread=4"};
    const Maps& maps = made.lab->outcome->maps;
    const Tensor& tensor = made.lab->outcome->tensor;
    CHECK(maps.grid.height == 2);
    CHECK(maps.grid.width == 3);
    CHECK(maps.grid.rows == 50);
    CHECK(maps.grid.cols == 50);
    REQUIRE(maps.magnitude.size() == 2500);
    double largest = 0;
    for (const std::size_t i : {0UL, 1UL, 2UL, 150UL, 151UL, 152UL})
        largest = std::max(largest, std::fabs(static_cast<double>(tensor.values[i])));
    CHECK(maps.magnitude[0] == std::log2(largest));
    // A power of two: what fits is 448 of it.
    CHECK(maps.top[0] - std::log2(448.0) == std::round(maps.top[0] - std::log2(448.0)));
    CHECK(maps.top[0] >= maps.magnitude[0]);
}

TEST_CASE("every scheme, element and mode gives figures with a finding, and at most six controls a tier") {
    for (const char* scheme : {"tensor", "row", "1x128", "128x128", "mx32", "nvfp4"})
        for (const char* element : {"e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "int8"})
            for (const char* maps : {"error", "transpose"})
                for (const char* kind : {"normal", "lognormal", "zeros"}) {
                    BlocksLab lab;
                    set_field(lab.fields(), std::string("scheme=") + scheme);
                    set_field(lab.fields(), std::string("element=") + element);
                    set_field(lab.fields(), std::string("maps=") + maps);
                    set_field(lab.fields(), std::string("tensor=") + kind);
                    set(lab, {"rows=40", "cols=70"});
                    CAPTURE(scheme);
                    CAPTURE(element);
                    CAPTURE(maps);
                    CAPTURE(kind);
                    const auto figures = lab.figures();
                    REQUIRE(figures.size() == 4);
                    for (const Figure& figure : figures) {
                        CHECK(figure.title.size() > 10);
                        const Extents extents = fit(figure);
                        CHECK(extents.x.lo < extents.x.hi);
                        CHECK(std::isfinite(extents.x.hi + extents.y.hi));
                    }
                    int tiers[2] = {0, 0};
                    for (const Field& field : lab.fields())
                        tiers[field.info.more] += lab.applies(field.info.name);
                    CHECK(tiers[0] <= 6);
                    CHECK(tiers[1] <= 6);
                }
}

TEST_CASE("a tensor of one's own replaces the generated one") {
    const Scratch scratch;
    const std::string path = scratch / "x.npy";
    const std::vector<float> values = {1, 2, 3, 0.001F, 0.002F, 448};
    const std::vector<std::size_t> shape = {2, 3};
    write_file(path, to_npy(values, shape));
    BlocksLab lab;
    set_field(lab.fields(), "file=" + path);
    lab.update();
    CHECK(lab->outcome->tensor.values == values);
    CHECK(lab->outcome->tensor.rows == 2);
    CHECK_FALSE(lab.applies("row_spread"));
    set_field(lab.fields(), "file=" + path + ".missing");
    CHECK_THROWS_AS(lab.update(), Error);
    lab.reset();
    lab.update();
    CHECK(lab->outcome->tensor.rows == 256);
}

TEST_CASE("blocks: the field table reads back what it wrote and refuses what it does not know") {
    BlocksLab lab;
    set(lab, {"scheme=mx32", "rule=even", "row_spread=3", "element=e5m2"});
    BlocksLab other;
    other.restore(lab.state());
    other.update();
    CHECK(other.state() == lab.state());
    CHECK(other->outcome->by_cols.values == lab->outcome->by_cols.values);
    CHECK_THROWS_WITH_AS(set_field(lab.fields(), "scheme=mx16"), doctest::Contains("nvfp4"), Error);
    CHECK_THROWS_AS(set_field(lab.fields(), "rows=0"), Error);
    lab.reset();
    CHECK(lab.state() == BlocksLab().state());
}

TEST_CASE("every number in the lesson of L6 is computed here") {
    std::set<std::string> computed;
    const auto add = [&](double value, int digits = 4) { computed.insert(format_number(value, digits)); };
    const Made flat{};
    for (const char* name : {"tensor.sqnr_db", "mx32-up.sqnr_db", "mx32-floor.sqnr_db"}) add(flat(name), 3);
    add(flat("nvfp4.sqnr_db"), 3);
    add(flat("mx32-up.scales"));
    add(flat("mx32-up.bits_per_element"));
    add(flat("nvfp4.bits_per_element"), 2);
    const Tensor& tensor = flat.lab->outcome->tensor;
    const auto all = schemes(find_format("e4m3"), false);
    const Copy floor =
        quantized_copy(std::ranges::find(all, "mx32-floor", &Scheme::id)->plan, tensor, Along::cols);
    add(static_cast<double>(floor.grid.width));
    add(max_finite(find_format("e4m3")) / 256);  // the largest significand that the floor rule leaves whole
    add(static_cast<double>(quantized_copy(all.back().plan, tensor, Along::cols).grid.width));
    const Made spread{"row_spread=4"};
    add(spread.lab->params.tensor.row_spread);
    add(spread("tensor.underflow_pct"), 2);
    add(spread("mx32-up.underflow_pct"), 2);
    add(spread("tensor.lost_l1_pct"), 2);
    add(spread("tensor.worst_row_db"), 2);
    add(spread("mx32-up.worst_row_db"), 2);
    add(spread("mx32-up.copies_differ_pct"), 2);
    add(flat("mx32-up.copies_differ_pct"), 2);
    for (const Made* made : {&flat, &spread}) {
        CHECK((*made)("1x128.copies_differ_pct") > 99);
        CHECK((*made)("nvfp4.copies_differ_pct") > 75);
    }
    const Made four_bits{"element=e2m1"};
    add(four_bits("tensor.sqnr_db"), 3);
    add(four_bits("nvfp4.sqnr_db"), 3);
    add(128);
    double least = 100, most = 0;
    constexpr int kSeeds = 10;
    for (int seed = 1; seed <= kSeeds; ++seed) {
        const Made other{"row_spread=4", "seed=" + std::to_string(seed)};
        least = std::min(least, other("tensor.underflow_pct"));
        most = std::max(most, other("tensor.underflow_pct"));
    }
    add(std::round(least)), add(std::round(most)), add(1), add(kSeeds);
    for (const std::string& number : test::lesson_numbers("blocks")) {
        CAPTURE(number);
        CHECK(computed.count(number) == 1);
    }
}
