// Oracles: the table of a prototype in numpy (means of seeds 1 to 5; curriculum.md 3.11), the recipe written out
// element by element from numerics.md 1.5, and sums of quantize() casts.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/figure/words.h"
#include "core/files/files.h"
#include "core/tensors/npy.h"
#include "labs/four/model.h"
#include "labs/set_fields.h"
#include "tests/scratch.h"
#include "tests/unit/labs/lesson_numbers.h"

using namespace fp8lab;
using namespace fp8lab::four;

namespace {

double metric_of(const Lab& lab, std::string_view name) {
    const auto metrics = lab.metrics();
    const auto it = std::ranges::find(metrics, name, &Metric::name);
    REQUIRE_MESSAGE(it != metrics.end(), name);
    return it->value;
}

struct Made {
    FourLab lab;
    Made(std::initializer_list<std::string> assignments) {
        for (const std::string& assignment : assignments) set_field(lab.fields(), assignment);
        lab.update();
    }
    double operator()(std::string_view name) const { return metric_of(lab, name); }
};

bool near(double value, double wanted, double by) { return std::fabs(value - wanted) <= by; }

// E4M3 and E2M1 to nearest even, saturating, on doubles: the grids written out.
double to_grid(double x, int mantissa, int least, double most) {
    const double size = std::fabs(x);
    if (size == 0) return x;
    const int exponent = std::max(std::ilogb(size), least);
    const double step = std::ldexp(1.0, exponent - mantissa);
    return std::copysign(std::min(std::nearbyint(size / step) * step, most), x);
}
float e4m3(float x) { return static_cast<float>(to_grid(static_cast<double>(x), 3, -6, 448)); }
float e2m1(float x) { return static_cast<float>(to_grid(static_cast<double>(x), 1, 0, 6)); }

}  // namespace

TEST_CASE("L12: the table of six kinds of tensor, NVFP4 and MXFP4, as they are and rotated") {
    struct Row {
        const char* kind;
        double nvfp4, zero, nvfp4_rht, zero_rht, mxfp4, mxfp4_rht, both, both_rht, square;
    };
    // The prototype's numbers, but for the log-normal tensors, whose seed 1 has one element with much of the energy.
    for (const Row& row : {Row{"normal", 20.4, 7, 20.5, 7, 18.8, 18.8, 21.2, 21.2, 19.1},
                           Row{"laplace", 20.7, 13, 20.4, 6, 17.6, 18.6, 21.2, 21.2, 17.8},
                           Row{"student_t", 20.8, 12, 20.1, 6, 16.4, 18.8, 21.2, 21.1, 14.7},
                           Row{"lognormal", 23.4, 37, 20.6, 4.4, 17.3, 19.4, 23.7, 22.4, 15.6},
                           Row{"swiglu_h", 21.0, 38, 19.9, 5, 16.6, 18.9, 21.4, 21.1, 16.1},
                           Row{"outlier_channel", 22.0, 54, 18.7, 1, 16.5, 19.5, 22.1, 21.4, 16.2}}) {
        CAPTURE(std::string(row.kind));
        Numbers nvfp4, nvfp4_rht, mxfp4, mxfp4_rht, both, both_rht, square;
        constexpr int kSeeds = 5;
        for (int seed = 1; seed <= kSeeds; ++seed) {
            const Tensor x = make_tensor(
                {.kind = row.kind, .size = 1, .sigma = 1.5, .seed = seed, .rows = 256, .cols = 256});
            const Tensor y = rotated(x, te_signs());
            const auto add = [](Numbers& to, const Numbers& from) {
                to.sqnr_db += from.sqnr_db / kSeeds, to.zero_pct += from.zero_pct / kSeeds;
            };
            add(nvfp4, cast_numbers({}, x)), add(nvfp4_rht, cast_numbers({}, y));
            add(mxfp4, cast_numbers({.nvfp4 = false}, x)), add(mxfp4_rht, cast_numbers({.nvfp4 = false}, y));
            add(both, cast_numbers({.target = Nvfp4Target::four_or_six}, x));
            add(both_rht, cast_numbers({.target = Nvfp4Target::four_or_six}, y));
            add(square, cast_numbers({.square = true}, x));
        }
        constexpr double by = 0.3;
        CHECK(near(nvfp4.sqnr_db, row.nvfp4, by));
        CHECK(near(nvfp4_rht.sqnr_db, row.nvfp4_rht, by));
        CHECK(near(mxfp4.sqnr_db, row.mxfp4, by));
        CHECK(near(mxfp4_rht.sqnr_db, row.mxfp4_rht, by));
        CHECK(near(both.sqnr_db, row.both, by));
        CHECK(near(both_rht.sqnr_db, row.both_rht, by));
        CHECK(near(square.sqnr_db, row.square, by));
        CHECK(near(nvfp4.zero_pct, row.zero, 0.1 * row.zero + 0.5));
        CHECK(near(nvfp4_rht.zero_pct, row.zero_rht, 0.1 * row.zero_rht + 0.5));
        // The order: what the rotation does to each format, and 4 or 6 to NVFP4.
        const bool gaussian = std::string_view(row.kind) == "normal";
        CHECK((gaussian ? near(nvfp4_rht.sqnr_db, nvfp4.sqnr_db, 0.1)
                        : nvfp4_rht.sqnr_db < nvfp4.sqnr_db - 0.2));
        CHECK((gaussian ? near(mxfp4_rht.sqnr_db, mxfp4.sqnr_db, 0.1)
                        : mxfp4_rht.sqnr_db > mxfp4.sqnr_db + 0.5));
        CHECK(both.sqnr_db > nvfp4.sqnr_db);
        CHECK(square.sqnr_db < nvfp4.sqnr_db - 1);
    }
}

TEST_CASE("L12: gains of the mean of 64 stochastic casts, with and without the rotation") {
    struct Row {
        const char* kind;
        double nvfp4, rotated, mxfp4;
    };
    for (const Row& row : {Row{"normal", -0.34, -0.36, 0.00}, Row{"laplace", -0.50, -0.31, 0.02},
                           Row{"student_t", -0.63, -0.29, 0.02}, Row{"lognormal", -0.61, -0.13, 0.62},
                           Row{"swiglu_h", -0.74, -0.24, 0.03}, Row{"outlier_channel", -1.14, -0.12, 0.03}}) {
        CAPTURE(std::string(row.kind));
        const Made made{std::string("tensor=") + row.kind, "rounding=stochastic"};
        const double plain = made("nvfp4.sr.gain_pct"), turned = made("nvfp4.sr_rht.gain_pct");
        CHECK(near(plain, row.nvfp4, 0.1 * std::fabs(row.nvfp4) + 0.04));
        CHECK(near(turned, row.rotated, 0.1 * std::fabs(row.rotated) + 0.04));
        CHECK(near(made("mxfp4.sr.gain_pct"), row.mxfp4, 0.12));
        if (std::string_view(row.kind) != "normal") CHECK(turned > plain + 0.1);
    }
}

TEST_CASE("L12: means of many casts, W and its copy, dW with one operand rotated") {
    const Made made{"rounding=stochastic", "rht=off", "casts=256"};
    const Means& means = *made.lab->means;
    for (const auto& [n, nvfp4, mxfp4] : {std::tuple{1, 17.4, 13.1}, {16, 28.7, 25.2}, {256, 35.2, 37.2}}) {
        CAPTURE(n);
        CHECK(near(means.nvfp4.at(n).sqnr_db, nvfp4, 0.3));
        CHECK(near(means.mxfp4.at(n).sqnr_db, mxfp4, 0.3));
    }
    CHECK(made("mean_db") == means.nvfp4.at(256).sqnr_db);
    CHECK(near(made("nearest_db"), 21.0, 0.3));
    CHECK(near(made("dw.plain_db"), 17.8, 0.3));
    CHECK(near(made("dw.rht_db"), 17.0, 0.3));
    CHECK(near(made("dw.one_operand_db"), -3.3, 1));
    CHECK(near(made("w.copies_differ_pct"), 77.1, 2));
    CHECK(near(made("w.copies_sqnr_db"), 17.7, 0.3));
    CHECK(near(made("w.sqnr_db"), 20.4, 0.3));
    const Made square{"block=16x16"};
    CHECK(square("w.copies_differ_pct") == 0);
    CHECK(std::isinf(square("w.copies_sqnr_db")));
    CHECK(near(square("w.sqnr_db"), 19.0, 0.3));
    CHECK(square("bits") == 4.5);
    CHECK(square("scales") == 256);
    const Made mx{"format=mxfp4"};
    CHECK(near(mx("w.copies_differ_pct"), 6.4, 1));
    CHECK(mx("bits") == 4.25);
    CHECK(mx("clip_pct") == 0);
    for (const char* kind : {"normal", "swiglu_h", "lognormal", "outlier_channel"})
        for (const char* rht : {"off", "on"})
            CHECK(near(Made{std::string("tensor=") + kind, std::string("rht=") + rht}("clip_pct"), 51, 3));
}

TEST_CASE("L12: the maps are Transformer Engine's NVFP4, element by element, as they are and rotated") {
    const Made made{};
    const Outcome& o = *made.lab->outcome;
    // x diag(s) H16 / 4, from the definition: H[i][j] = (-1)^popcount(i & j).
    const RhtSigns signs = te_signs();
    for (std::size_t row = 0; row < 4; ++row)
        for (std::size_t first = 0; first < 64; first += 16)
            for (unsigned j = 0; j < 16; ++j) {
                double sum = 0;
                for (unsigned i = 0; i < 16; ++i)
                    sum += static_cast<double>(o.tensor[0].values[row * 256 + first + i] * signs[i]) *
                           (std::popcount(i & j) % 2 == 0 ? 1 : -1);
                CHECK(near(static_cast<double>(o.tensor[1].values[row * 256 + first + j]), sum / 4, 1e-4));
            }
    for (std::size_t which = 0; which < 2; ++which) {
        const Tensor& x = o.tensor[which];
        float amax = 0;
        for (const float value : x.values) amax = std::max(amax, std::fabs(value));
        const float scale = 448.0F * 6.0F / amax;
        for (std::size_t block = 0; block < 512; ++block) {
            float largest = 0;
            for (std::size_t i = 0; i < 16; ++i)
                largest = std::max(largest, std::fabs(x.values[16 * block + i]));
            const float s8 = e4m3(largest * (scale * (1 / 6.0F)));
            const float factor = 1 / (s8 * (1 / scale));
            for (std::size_t i = 0; i < 16; ++i) {
                const double back = static_cast<double>(e2m1(x.values[16 * block + i] * factor)) *
                                    static_cast<double>(s8 / scale);
                REQUIRE(near(static_cast<double>(o.cast[which].back[16 * block + i]), back,
                             1e-6 * std::fabs(back) + 1e-12));
            }
        }
    }
}

TEST_CASE("L12: the mean of n casts is the mean of n results of quantize(), with streams 1 to n") {
    const Tensor x = make_tensor({.kind = "swiglu_h", .size = 1, .seed = 3, .rows = 37, .cols = 48});
    const std::array ways = {Way{}, Way{.square = true}, Way{.nvfp4 = false},
                             Way{.target = Nvfp4Target::four}, Way{.target = Nvfp4Target::four_or_six}};
    std::vector<MeanRequest> requests;
    for (const Way& way : ways) requests.push_back({way, &x, {1, 3, 5}});
    requests.push_back({ways[0], &x, {2}});  // fewer casts than the others
    const Tensor large = make_tensor({.kind = "normal", .size = 1, .seed = 3, .rows = 96, .cols = 48});
    requests.push_back({ways[0], &large, {2}});  // more elements
    const std::vector<MeanLine> lines = mean_lines(requests, 3);
    CHECK(lines[ways.size()].n == std::vector{2});
    const MeanRequest alone{ways[0], &large, {2}};
    CHECK(lines.back().at(2).sqnr_db == mean_lines({&alone, 1}, 3).front().at(2).sqnr_db);
    for (std::size_t w = 0; w < ways.size(); ++w) {
        const MeanLine& line = lines[w];
        Way drawn = ways[w];
        drawn.stochastic = true;
        std::vector<double> sum(x.values.size());
        std::vector<float> back(x.values.size());
        for (int n = 1; n <= 5; ++n) {
            quantize(plan_of(drawn), x.values, back,
                     {.rows = x.rows, .cols = x.cols, .seed = 3, .stream = static_cast<std::uint64_t>(n)});
            for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(back[i]);
            if (n == 2 || n == 4) continue;
            double signal = 0, noise = 0, product = 0;
            for (std::size_t i = 0; i < sum.size(); ++i) {
                const double value = static_cast<double>(x.values[i]), mean = sum[i] / n;
                signal += value * value, noise += (value - mean) * (value - mean), product += value * mean;
            }
            CHECK(line.at(n).sqnr_db == doctest::Approx(10 * std::log10(signal / noise)).epsilon(1e-6));
            CHECK(line.at(n).gain_pct == doctest::Approx(100 * (product / signal - 1)).epsilon(1e-4));
        }
    }
}

TEST_CASE("L12: the numbers follow from the fields, and a switch back gives the same again") {
    FourLab lab;
    lab.update();
    const auto before = lab.metrics();
    for (const char* assignment :
         {"format=mxfp4", "rounding=stochastic", "tensor=normal", "seed=2", "rht=off"}) {
        set_field(lab.fields(), assignment);
        lab.update();
    }
    lab.reset();
    lab.update();
    const auto after = lab.metrics();
    REQUIRE(before.size() == after.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
        CAPTURE(before[i].name);
        CHECK((before[i].value == after[i].value ||
               (std::isnan(before[i].value) && std::isnan(after[i].value))));
    }
}

TEST_CASE(
    "L12: numbers under other signs and with other ways are those of a new lab, whatever was shown before") {
    FourLab walked;
    const std::vector<std::string> all = {
        "rounding=stochastic", "target=4or6", "signs=none", "rht=off", "signs=drawn",
        "sign_seed=7",         "rht=on",      "seed=2",     "signs=te"};
    for (std::size_t count = 1; count <= all.size(); ++count) {
        CAPTURE(all[count - 1]);
        set_field(walked.fields(), all[count - 1]);
        walked.update();
        FourLab fresh;
        for (std::size_t i = 0; i < count; ++i) set_field(fresh.fields(), all[i]);
        fresh.update();
        const auto of_walked = walked.metrics(), of_fresh = fresh.metrics();
        REQUIRE(of_walked.size() == of_fresh.size());
        for (std::size_t i = 0; i < of_fresh.size(); ++i) {
            CAPTURE(of_fresh[i].name);
            CHECK((of_walked[i].value == of_fresh[i].value ||
                   (std::isnan(of_walked[i].value) && std::isnan(of_fresh[i].value))));
        }
    }
}

TEST_CASE("L12: titles are sentences of the numbers") {
    CHECK(Made{}.lab.figures()[0].title == "Fewer zeros, yet more noise: RHT costs NVFP4 1.1 dB (seed 1)");
    CHECK(Made{"format=mxfp4"}.lab.figures()[0].title.starts_with("RHT gives MXFP4 2."));
    CHECK(Made{"tensor=normal"}.lab.figures()[0].title ==
          "RHT changes nothing here: the data are Gaussian already (seed 1)");
    CHECK(Made{}.lab.figures()[2].title.starts_with("Rotation lifts MXFP4 by up to "));
    CHECK(Made{}.lab.figures()[3].title == "Errors average out, all but the saturation");
    for (const Figure& figure : Made{}.lab.figures()) CHECK(to_words(figure).size() >= 3);
}

TEST_CASE("L12: the marked block, by hand: tensor amax 10, block amax 3.1") {
    const Scratch scratch;
    std::vector<float> values(16 * 16, 0.01F);
    values[0] = 10;
    for (std::size_t i = 16; i < 32; ++i) values[i] = 0.1F * static_cast<float>(i - 15);
    values[31] = -3.1F;
    const std::string file = scratch / "hand.npy";
    write_file(file, to_npy(values, std::array<std::size_t, 2>{16, 16}));
    const Made made{"file=" + file, "rht=off", "block_index=1"};
    CHECK(made("block.amax") == doctest::Approx(3.1));
    CHECK(made("block.scale_code") == 0x71);  // 144 = 2^7 x 1.125
    CHECK(made("block.unit") == doctest::Approx(0.535714));
    CHECK(made("block.top") == doctest::Approx(5.7867).epsilon(1e-4));
    const Marked block = made.lab->marked();
    CHECK(block.row == 1);
    CHECK(static_cast<double>(made.lab->outcome->cast[0].back[31]) == doctest::Approx(-3.2143).epsilon(1e-4));
}

TEST_CASE("L12: own tensors that have no maps say why, partial blocks, zeros and large ones") {
    const Scratch scratch;
    const auto own = [&](const char* name, std::vector<float> values, std::size_t rows, std::size_t cols) {
        const std::string file = scratch / name;
        write_file(file, to_npy(values, std::array{rows, cols}));
        return "file=" + file;
    };
    std::vector<float> bad(20 * 32, 1.0F);
    bad[4 * 32 + 17] = bad[200] = bad[300] = std::nanf("");
    bad[301] = -INFINITY;
    const Made nan{own("nan.npy", bad, 20, 32)};
    CHECK(nan.lab->outcome->problem ==
          "3 NaN and 1 Inf, first at row 4, column 17: a block with NaN has no scale.");
    CHECK(std::isnan(nan("sqnr_db")));
    CHECK(nan.lab.figures()[0].title == "No maps of this tensor");
    CHECK(Made{own("narrow.npy", std::vector<float>(30, 1.0F), 3, 10)}.lab->outcome->problem ==
          "A block needs 16 columns; this tensor has 10.");
    const Made zeros{own("zeros.npy", std::vector<float>(64, 0.0F), 2, 32)};
    CHECK(std::isnan(zeros("sqnr_db")));
    CHECK(zeros.lab.figures()[0].title == "Every element is 0: no signal");
    std::vector<float> odd(19 * 21);
    for (std::size_t i = 0; i < odd.size(); ++i) odd[i] = std::sin(static_cast<float>(i));
    const std::string partial = own("odd.npy", odd, 19, 21);
    const Made square{partial, "block=16x16", "rht=off"};
    CHECK(square("scales") == 4);
    CHECK(square("sqnr_db") > 15);
    const Made turned{partial};
    CHECK(turned.lab->outcome->tensor[1].cols == 32);  // the padding stays
    CHECK(turned("sqnr_db") > 15);
    const Made large{own("large.npy", std::vector<float>(5000 * 16, 0.5F), 5000, 16)};
    CHECK(large.lab->outcome->note == "The first 4096×16 of 5000×16 elements.");
}

TEST_CASE("L12: what MXFP4 does not have is refused, and its switches say why") {
    FourLab lab;
    for (const char* other : {"block=16x16", "target=4or6"})
        CHECK_THROWS_AS(set_fields(lab, std::vector<std::string>{"format=mxfp4", other}), Error);
    lab.reset();
    set_fields(lab, std::vector<std::string>{"format=mxfp4"});
    CHECK(lab.why_not("block") == "OCP MX has no 2-D block.");
    CHECK_FALSE(lab.why_not("target").empty());
    CHECK_THROWS_WITH_AS(set_field(lab.fields(), "tensor=decades"), doctest::Contains("swiglu_h"), Error);
    CHECK_THROWS_AS(set_field(lab.fields(), "signs=1"), Error);
}

TEST_CASE("L12: the switches as a recipe, and as Transformer Engine's call") {
    const auto text = [](std::initializer_list<std::string> assignments) {
        return recipe_text(Made(assignments).lab->recipe());
    };
    CHECK(text({"rht=off", "rounding=stochastic"}) == "nvfp4");
    const Recipe te = Made{"block=16x16", "rounding=stochastic"}.lab->recipe();
    const Recipe row = parse_recipe("nvfp4-te");
    CHECK((te.square_weights == row.square_weights && te.rht == row.rht && te.target == row.target &&
           te.round_bwd == row.round_bwd));
    CHECK(transformer_engine_code(te).find("NVFP4BlockScaling(") != std::string::npos);
    CHECK(transformer_engine_code(Made{"rht=off"}.lab->recipe()).find("disable_rht=True") !=
          std::string::npos);
    CHECK(text({"format=mxfp4", "rounding=stochastic"}).starts_with("mxfp4"));
}

TEST_CASE("L12: the lesson's numbers are the lab's") {
    const std::set<std::string> numbers = test::lesson_numbers("four");
    const Made made{"rounding=stochastic", "rht=off"};
    const auto states = [&](const std::string& number) {
        CAPTURE(number);
        CHECK(numbers.contains(number));
    };
    const auto one = [](double value) { return fmt::format("{:.1f}", std::fabs(value)); };
    const auto two = [](double value) { return fmt::format("{:.2f}", std::fabs(value)); };
    states(fmt::format("{:.0f}", made("nvfp4.plain.zero_pct")));
    states(fmt::format("{:.0f}", made("nvfp4.rht.zero_pct")));
    states(one(made("nvfp4.plain.sqnr_db") - made("nvfp4.rht.sqnr_db")));
    states(one(made("mxfp4.rht.sqnr_db") - made("mxfp4.plain.sqnr_db")));
    states(one(made("one_db")));
    states(one(made("mean_db")));
    states(one(made("nearest_db")));
    states(two(made("nvfp4.sr.gain_pct")));
    states(two(made("nvfp4.sr_rht.gain_pct")));
    states(two(made("mxfp4.sr.gain_pct")));
    states(fmt::format("{:.0f}", made("w.copies_differ_pct")));
    states(one(made("w.square_costs_db")));
}

TEST_CASE("a picture is a tensor: L12 shows it, its casts, and the cast of the rotated one turned back") {
    const Made made{"tensor=picture"};
    const Outcome& o = *made.lab->outcome;
    REQUIRE(o.tensor[0].picture);
    CHECK(o.turned_back.size() == o.tensor[0].values.size());
    // Rotating is orthogonal: the error of what is turned back is that of the rotated cast.
    CHECK(compare(o.tensor[0].values, o.turned_back).sqnr_db ==
          doctest::Approx(o.cast[1].numbers.sqnr_db).epsilon(1e-3));
    const Figure tiles = made.lab.figures()[0];
    const auto greys = std::ranges::count_if(tiles.series, [](const Series& series) {
        const auto* map = std::get_if<HeatmapSeries>(&series.shape);
        return map && map->grey;
    });
    CHECK(greys == 3);
    // A star takes the shades of its block: fewer grey values there than in a block without one.
    std::size_t fewest = 16, most = 0;
    for (std::size_t block = 0; block < o.cast[0].units.size(); ++block) {
        std::set<float> shades(o.cast[0].back.begin() + static_cast<std::ptrdiff_t>(16 * block),
                               o.cast[0].back.begin() + static_cast<std::ptrdiff_t>(16 * block + 16));
        fewest = std::min(fewest, shades.size()), most = std::max(most, shades.size());
    }
    CHECK(fewest <= 2);
    CHECK(most >= 4);
}
