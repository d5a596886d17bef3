// Oracles: the tables of a prototype in numpy (curriculum.md 3.12; other draws, so within the spread over seeds), casts
// written out on doubles, and the arithmetic of one step of delayed scaling and of the moving average.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/base/units.h"
#include "core/figure/words.h"
#include "core/files/files.h"
#include "core/formats/codec.h"
#include "labs/set_fields.h"
#include "labs/wide/model.h"
#include "tests/te_code.h"
#include "tests/unit/labs/lesson_numbers.h"

using namespace fp8lab;
using namespace fp8lab::wide;

namespace {

struct Made {
    WideLab lab;
    Made(std::initializer_list<std::string> assignments) {
        for (const std::string& assignment : assignments) set_field(lab.fields(), assignment);
        lab.update();
    }
    double operator()(std::string_view name) const {
        const auto metrics = lab.metrics();
        const auto it = std::ranges::find(metrics, name, &Metric::name);
        REQUIRE_MESSAGE(it != metrics.end(), name);
        return it->value;
    }
    std::string text(std::string_view name) const {
        const auto metrics = lab.metrics();
        return std::ranges::find(metrics, name, &Metric::name)->text;
    }
};

bool near(double value, double wanted, double by) { return std::fabs(value - wanted) <= by; }
bool within(double value, double wanted, double part) { return near(value, wanted, part * wanted); }

// To nearest even on doubles, saturating: the grids written out.
double to_grid(double x, int mantissa, int least, double most) {
    const double size = std::fabs(x);
    if (size == 0) return x;
    const double gap = std::ldexp(1.0, std::max(std::ilogb(size), least) - mantissa);
    return std::copysign(std::min(std::nearbyint(size / gap) * gap, most), x);
}
double e4m3(double x) { return to_grid(x, 3, -6, 448); }
double e5m2(double x) { return to_grid(x, 2, -14, 57344); }
double bf16(double x) { return to_grid(x, 7, -126, 3.3895e38); }

}  // namespace

TEST_CASE("L14: what four casts of the probabilities lose, at four lengths") {
    struct Row {
        int keys;
        double sigma;
        const char* format;
        std::array<double, 4> zero, lost, output;  // as numpy has them; output 0: not computed
    };
    for (const Row& row :
         {Row{64, 3, "e4m3", {62.9, 53.3, 6.1, 4.1}, {0.75, 0.28, 0.0002, 0.0001}, {31.2, 40.8, 41.1, 40.6}},
          Row{1024,
              3,
              "e4m3",
              {92.0, 80.3, 18.9, 14.7},
              {7.2, 1.9, 0.0044, 0.0021},
              {30.0, 37.1, 38.2, 38.2}},
          Row{8192, 3, "e4m3", {98.5, 92.6, 36.8, 30.3}, {22.0, 6.2, 0.036, 0.018}, {25.7, 34.9, 37.5, 37.7}},
          Row{131072, 3, "e4m3", {99.9, 98.1, 60.3, 53.2}, {55.5, 17.0, 0.27, 0.15}, {0, 0, 0, 0}},
          Row{8192, 3, "e5m2", {70.8, 45.4, 2.9, 1.9}, {0.77, 0.08, 4e-5, 1e-5}, {26.5, 31.1, 31.1, 32.1}}}) {
        CAPTURE(row.keys);
        CAPTURE(row.format);
        std::array<double, 4> zero = {}, lost = {}, output = {};
        constexpr int kSeeds = 3;
        for (int seed = 1; seed <= kSeeds; ++seed) {
            Normals normals;
            const Attention a = attention_of(
                {.keys = row.keys, .sigma = row.sigma, .format = row.format, .seed = seed}, normals);
            for (std::size_t c = 0; c < 4; ++c) {
                zero[c] += a.casts[c].zero_pct / kSeeds, lost[c] += a.casts[c].lost_pct / kSeeds;
                output[c] += a.casts[c].output_db / kSeeds;
            }
        }
        for (std::size_t c = 0; c < 4; ++c) {
            CAPTURE(c);
            CHECK(near(zero[c], row.zero[c], 2));
            // Rare small keys decide what little the scaled casts lose: a quarter; of the others 8 %.
            if (row.lost[c] > 1e-3) CHECK(within(lost[c], row.lost[c], row.lost[c] < 0.5 ? 0.25 : 0.08));
            if (row.lost[c] <= 1e-3) CHECK(lost[c] < 1e-3);
            if (row.output[c] > 0) CHECK(near(output[c], row.output[c], 2));  // numpy's spread over draws
            if (row.output[c] == 0) CHECK(std::isnan(output[c]));
        }
        CHECK(lost[0] > lost[1]);
        CHECK(lost[1] > lost[2]);
        CHECK(lost[2] > lost[3]);
    }
}

TEST_CASE("L14: zeros, loss and output of one setting, computed again from the draws on doubles") {
    for (const char* format : {"e4m3", "e5m2"})
        for (const bool after : {false, true})
            for (const double sink : {0.0, 5.0}) {
                CAPTURE(format);
                CAPTURE(after);
                CAPTURE(sink);
                const AttentionSpec spec{.keys = 256,
                                         .sigma = 2.5,
                                         .sink = sink,
                                         .format = format,
                                         .sum_after = after,
                                         .head = 16,
                                         .seed = 4};
                Normals normals;
                const Attention a = attention_of(spec, normals);
                const auto drawn = normals.of(4, 256);
                std::vector<float> values(256 * 16);
                Rng(4, 1'000'003).fill_normal(values);
                const auto cast = [&](double x) { return format[1] == '4' ? e4m3(x) : e5m2(x); };
                for (std::size_t c = 0; c < 4; ++c) {
                    CAPTURE(c);
                    const double scale = c < 2 ? 1 : c == 2 ? 256 : 448;
                    double zeros = 0, lost = 0, all = 0, signal = 0, noise = 0;
                    for (std::size_t row = 0; row < 64; ++row) {
                        std::vector<double> s(256), p(256), q(256);
                        for (std::size_t i = 0; i < 256; ++i)
                            s[i] = 2.5 * static_cast<double>((*drawn)[row * 256 + i]);
                        if (sink > 0) s[0] = std::ranges::max(s) + sink;
                        const double top = std::ranges::max(s);
                        double z = 0, kept = 0;
                        for (double& score : s) score = std::exp(score - top), z += score;
                        for (std::size_t i = 0; i < 256; ++i) {
                            p[i] = s[i] / z;
                            const double x = c == 0 ? p[i] : s[i];
                            q[i] = cast(x * scale) / scale;
                            zeros += q[i] == 0, lost += q[i] == 0 ? x : 0, all += x, kept += q[i];
                        }
                        const double divisor = after ? kept : c == 0 ? 1 : z;
                        for (std::size_t h = 0; h < 16; ++h) {
                            double exact = 0, got = 0;
                            for (std::size_t i = 0; i < 256; ++i) {
                                const auto v = static_cast<double>(values[i * 16 + h]);
                                exact += p[i] * v, got += q[i] / divisor * v;
                            }
                            signal += exact * exact, noise += (exact - got) * (exact - got);
                        }
                    }
                    // FP32's rounding decides a key at the cut; 64 x 256 keys in all.
                    CHECK(near(a.casts[c].zero_pct, 100 * zeros / (64 * 256), 0.02));
                    CHECK(near(a.casts[c].lost_pct, 100 * lost / all, 0.002 + 0.002 * 100 * lost / all));
                    CHECK(near(a.casts[c].output_db, 10 * std::log10(signal / noise), 0.05));
                }
            }
}

TEST_CASE("L14: the cuts are ln(2^-10 / S), a tie becomes 0, and E5M2 reaches 7 binades lower") {
    Attention a, wider;
    wider.spec.format = "e5m2";
    a.log2_z = wider.log2_z = 3;
    CHECK(near(a.cut_log2(1) * std::log(2), -6.931, 5e-4));
    CHECK(near(a.cut_log2(2) * std::log(2), -12.477, 5e-4));
    CHECK(near(a.cut_log2(3) * std::log(2), -13.036, 5e-4));
    CHECK(a.cut_log2(0) == -7);
    for (std::size_t c = 0; c < 4; ++c) CHECK(wider.cut_log2(c) == a.cut_log2(c) - 7);
    for (const char* format : {"e4m3", "e5m2", "bf16"}) {
        const float at = zero_threshold(format);
        CHECK(encode(find_format(format), at) == 0);
        CHECK(encode(find_format(format), std::nextafter(at, 1.0F)) != 0);
    }
    // The metric is the chosen cast's; of the normalised one the mean over the rows.
    CHECK(Made{"cast=exp256"}("a.cut_ln") == doctest::Approx(-18 * std::log(2)));
    const Made normalised{};
    CHECK(normalised("a.cut_ln") == doctest::Approx(std::log(2) * (normalised("a.log2_z") - 10)));
}

TEST_CASE("L14: equal scores: 512 keys are kept, 1,024 are a tie and the whole row is lost") {
    Normals normals;
    const Attention kept = attention_of({.keys = 512, .sigma = 0}, normals);
    CHECK(kept.casts[0].lost_pct == 0);
    const Attention gone = attention_of({.keys = 1024, .sigma = 0}, normals);
    CHECK(gone.casts[0].zero_pct == 100);
    CHECK(gone.casts[0].lost_pct == 100);
    CHECK(gone.casts[0].output_db == 0);  // the output is 0: as much error as signal
    CHECK(gone.log2_z == 10);
    for (std::size_t c = 1; c < 4; ++c) CHECK(gone.casts[c].lost_pct == 0);
    CHECK(mass_title(gone, 0).find("the whole row is lost") != std::string::npos);
    // Divided by what is left of it, a lost row stays 0 and is no NaN.
    CHECK(attention_of({.keys = 1024, .sigma = 0, .sum_after = true}, normals).casts[0].output_db == 0);
    CHECK(mass_title(attention_of({.format = "bf16"}, normals), 0) ==
          "P, normalised × 1: nothing is lost at " + group_thousands(8192) + " keys");
}

TEST_CASE("L14: the histogram is the whole row, and what it says is lost is what is lost") {
    Normals normals;
    for (const double sink : {0.0, 4.0, 16.0}) {
        const Attention a = attention_of({.keys = 1024, .sigma = 3, .sink = sink}, normals);
        const auto sum = [](const std::vector<double>& v) {
            return std::accumulate(v.begin(), v.end(), 0.0);
        };
        CHECK(sum(a.keys_pct) == doctest::Approx(100).epsilon(1e-6));
        CHECK(sum(a.mass_pct) == doctest::Approx(100).epsilon(1e-4));
        CHECK(sum(a.lost_pct[0]) == doctest::Approx(a.casts[0].lost_pct).epsilon(1e-3));
        CHECK(a.keys_pct.back() == doctest::Approx(100.0 / 1024));  // one largest key a row
        CHECK(a.mass_pct.back() == doctest::Approx(a.largest_pct).epsilon(1e-6));
        if (sink > 0) CHECK(a.sink_mass_pct == doctest::Approx(a.largest_pct).epsilon(1e-6));
        for (std::size_t b = 0; b < a.mass_pct.size(); ++b)
            for (std::size_t c = 0; c < 4; ++c) CHECK(a.lost_pct[c][b] <= a.mass_pct[b] + 1e-9);
    }
}

TEST_CASE("L14: the sweep has the chosen length's numbers, and each doubling loses more") {
    const Made made{"keys=1024"};
    const auto& sweep = *made.lab->sweep;
    REQUIRE(sweep.size() == 12);
    CHECK((sweep.front().keys == 64 && sweep.back().keys == 131072));
    for (std::size_t c = 0; c < 4; ++c)
        CHECK(sweep[4].lost_pct[c] == doctest::Approx(made.lab->attention->casts[c].lost_pct).epsilon(1e-9));
    for (std::size_t i = 1; i < sweep.size(); ++i) CHECK(sweep[i].lost_pct[0] > sweep[i - 1].lost_pct[0]);
    CHECK(keys_title(sweep) == "Each doubling of the context loses more");
    CHECK(keys_title(*Made{"format=bf16"}.lab->sweep) == "Nothing is lost at any length");
}

TEST_CASE("L14: SwiGLU's product grows by the square, GELU by the factor, the clamp not at all") {
    for (const float g : {-8.0F, -1.0F, 0.0F, 0.5F, 3.0F, 12.0F})
        for (const float u : {-20.0F, -1.0F, 2.0F}) {
            const double x = static_cast<double>(g), up = static_cast<double>(u);
            const double silu = x / (1 + std::exp(-x));
            CHECK(near(static_cast<double>(swiglu_h(g, u)), silu * up, 1e-5 + 1e-6 * std::fabs(silu * up)));
            CHECK(near(static_cast<double>(clamped_h(g, u)),
                       std::min(silu, 10.0) * std::clamp(up, -10.0, 10.0), 1e-4));
            CHECK(near(static_cast<double>(gelu_h(g)), x * 0.5 * std::erfc(-x / std::sqrt(2)), 2e-3));
        }
    SwigluDraws draws;
    const Swiglu s = swiglu_of({}, draws);
    // Medians of 16 batches in numpy, of 24 here.
    struct Row {
        std::size_t at;
        double swiglu, gelu, clamp10;
    };
    for (const Row& row :
         {Row{2, 32.1, 5.7, 32.1}, Row{4, 129, 11.4, 100}, Row{6, 516, 22.7, 100}, Row{8, 2064, 45.4, 100}}) {
        CAPTURE(row.at);
        CHECK(within(s.norms[row.at].swiglu, row.swiglu, 0.15));
        CHECK(within(s.norms[row.at].gelu, row.gelu, 0.1));
        CHECK(within(s.norms[row.at].clamp10, row.clamp10, 0.15));
    }
    CHECK(s.amax_ratio == doctest::Approx(4).epsilon(1e-3));
    CHECK(swiglu_of({.rho = 0}, draws).amax_ratio == doctest::Approx(4).epsilon(0.01));  // at any angle
    CHECK(swiglu_of({.fix = "gelu"}, draws).amax_ratio == doctest::Approx(2).epsilon(0.01));
    CHECK(swiglu_of({.k = 8, .fix = "clamp10"}, draws).amax_ratio == 1);
    // Not aligned, the same norm gives less: 234 of 516 in numpy.
    const double right_angle = swiglu_of({.rho = 0}, draws).norms[6].swiglu;
    CHECK(within(right_angle, 234, 0.2));
}

TEST_CASE("L14: an outlier costs E4M3 nothing and INT8 everything") {
    std::array<double, 5> float8 = {}, int8 = {};
    for (int seed = 1; seed <= 4; ++seed) {
        SwigluDraws draws;
        const Swiglu s = swiglu_of({.seed = seed}, draws);
        for (std::size_t i = 0; i < 5; ++i) {
            float8[i] += s.inliers[i].e4m3_db / 4, int8[i] += s.inliers[i].int8_db / 4;
            CHECK(s.inliers[i].zero_pct < 5);
        }
    }
    const std::array<double, 5> numpy = {28.3, 18.9, 8.7, 2.1, 0.0};
    for (std::size_t i = 0; i < 5; ++i) {
        CHECK(near(float8[i], 31.5, 0.2));
        CHECK(near(int8[i], numpy[i], 2));
        if (i > 0) CHECK(int8[i] < int8[i - 1]);
    }
}

TEST_CASE("L14: the scale comes from the 16 amaxes before, or from the step's own") {
    const auto check = [](const SwigluSpec& spec) {
        SwigluDraws draws;
        const Swiglu s = swiglu_of(spec, draws);
        REQUIRE(s.steps.size() == 24);
        for (std::size_t t = 0; t < 24; ++t) {
            CAPTURE(t);
            double amax = s.steps[t].amax;
            if (spec.fix != "current" && t > 0) {
                amax = 0;
                for (std::size_t i = t - std::min<std::size_t>(t, static_cast<std::size_t>(spec.history));
                     i < t; ++i)
                    amax = std::max(amax, s.steps[i].amax);
            }
            CHECK(s.steps[t].top == doctest::Approx(amax * std::exp2(spec.margin)).epsilon(1e-6));
            CHECK((s.steps[t].saturated > 0) == (s.steps[t].over() > 464.0 / 448));
            CHECK(s.steps[t].k == spec.k * (t >= 8 ? spec.jump : 1));
            if (s.steps[t].saturated == 0) CHECK(std::fabs(s.steps[t].lost_l1_pct) < 1.5);
        }
    };
    check({});
    check({.margin = 2});
    check({.history = 1});
    check({.jump = 1, .history = 3});
    check({.margin = 1, .fix = "current"});
    check({.fix = "clamp10"});
    SwigluDraws draws;
    for (const SwigluStep& step : swiglu_of({.fix = "smooth"}, draws).steps) {
        CHECK(step.amax == 1);
        CHECK(step.saturated == 0);
    }
}

TEST_CASE("L14: channel 0 of the step that was too big, computed again") {
    SwigluDraws draws;
    const Swiglu s = swiglu_of({}, draws);
    std::vector<float> g(256 * 512), u(256 * 512);
    Rng rng(2, 108);
    rng.fill_normal(g), rng.fill_normal(u);
    const double top = s.steps[8].top;
    double signal = 0, noise = 0, before = 0, after = 0, amax = 0;
    int saturated = 0;
    for (std::size_t t = 0; t < 256; ++t) {
        const double x = 8 * static_cast<double>(g[t * 512]);
        const double h = x / (1 + std::exp(-x)) * x, q = e4m3(h * 448 / top) * top / 448;
        signal += h * h, noise += (h - q) * (h - q), before += std::fabs(h), after += std::fabs(q);
        amax = std::max(amax, std::fabs(h));
        saturated += std::fabs(h) * 448 / top > 464;
    }
    CHECK(s.steps[8].amax == doctest::Approx(amax).epsilon(1e-5));
    CHECK(s.steps[8].saturated == saturated);  // no other channel is that large
    CHECK(near(s.steps[8].channel_db, 10 * std::log10(signal / noise), 0.01));
    CHECK(near(s.steps[8].lost_l1_pct, 100 * (1 - after / before), 0.02));
}

TEST_CASE("L14: v to nearest is the average rounded in every step, stochastic rounding keeps its mean") {
    struct Row {
        const char* beta2;
        double off_pct;  // BF16, numpy
    };
    for (const Row& row : {Row{"0.9", 4.02}, Row{"0.95", 1.72}, Row{"0.98", 4.49}, Row{"0.99", 17.99},
                           Row{"0.995", 6.87}, Row{"0.999", 35.01}, Row{"0.9999", 3.05}})
        for (const auto& [format, cast] : {std::pair{"bf16", &bf16}, {"e4m3", &e4m3}, {"e5m2", &e5m2}}) {
            CAPTURE(row.beta2);
            CAPTURE(format);
            const Made made{"experiment=optimiser", std::string("beta2=") + row.beta2,
                            std::string("v_format=") + format};
            const auto keep = static_cast<double>(std::stof(row.beta2));
            double v = 1;
            for (int step = 0; step < 300; ++step)
                v = cast(static_cast<double>(static_cast<float>(keep * v)));
            CHECK(made("o.v_end") == v);
            if (cast == &bf16) CHECK(near(made("o.error_pct"), row.off_pct, 0.006));
            CHECK(made("o.exact") == doctest::Approx(std::pow(std::stod(row.beta2), 300)).epsilon(1e-9));
        }
    CHECK(Made{"experiment=optimiser", "v_format=e4m3", "beta2=0.95"}("o.v_end") == 0.625);
    CHECK(Made{"experiment=optimiser", "v_format=e5m2", "beta2=0.95"}("o.v_end") == 1);
    for (int seed = 1; seed <= 3; ++seed) {
        const std::string drawn = fmt::format("seed={}", seed);
        const auto off = [&](const char* format) {
            return Made{"experiment=optimiser", drawn, "v_round=stochastic",
                        std::string("v_format=") + format}("o.error_pct");
        };
        // One element scatters by 3.3 % and 15 % in numpy: four standard errors of the mean of 4,096.
        CHECK(off("bf16") < 4 * 3.3 / 64);
        CHECK(off("e4m3") < 4 * 15.0 / 64);
    }
    const Made wide{"experiment=optimiser", "v_format=fp32"};
    CHECK(wide("o.error_pct") < 0.01);
    CHECK(wide("o.stuck") == 0);
    CHECK(Made{"experiment=optimiser"}("o.stuck") == 1);
    CHECK(Made{"experiment=optimiser", "beta2=0.9"}("o.stuck") == 0);
}

TEST_CASE("L14: v with noise: where it ends depends on where it began, and on the scale of its block") {
    struct Row {
        std::vector<std::string> sets;
        double v, by;  // numpy, and its spread over draws
    };
    const std::string e4m3 = "v_format=e4m3";
    for (const Row& row :
         {Row{{"v0=0"}, 1.58, 0.05}, Row{{"v0=1"}, 1.82, 0.05}, Row{{"v0=4"}, 4.00, 0.03},
          Row{{e4m3, "v_scale=block128"}, 8.07, 0.25}, Row{{e4m3, "v_scale=block128_pow2"}, 1.00, 0.001},
          Row{{e4m3, "v_scale=block128", "beta2=0.95"}, 0.99, 0.03},
          Row{{e4m3, "v_scale=block128_pow2", "beta2=0.95"}, 2.16, 0.15}}) {
        Made made{"experiment=optimiser", "signal=noise"};
        set_fields(made.lab, row.sets);
        CAPTURE(row.v);
        CHECK(near(made("o.v_end"), row.v, row.by));
        CHECK(near(made("o.exact"), 1, 0.03));
    }
    CHECK(Made{"experiment=optimiser", "signal=noise", "v_round=stochastic"}("o.error_pct") < 0.3);
}

TEST_CASE("L14: gaps, bits and bytes") {
    const Made bf16{"experiment=optimiser"};
    CHECK(bf16("o.half_gap_pct") == 100 * 0x1p-9);
    CHECK(bf16("o.step_pct") == doctest::Approx(0.1));
    CHECK((bf16("o.bits") == 16 && bf16("o.bytes_per_param") == 4 && bf16("o.gb") == 28));
    const Made tie{"experiment=optimiser", "v_format=e4m3", "beta2=0.95"};
    CHECK(tie("o.half_gap_pct") == 5);  // 0.625 and 0.5625
    const Made fp32{"experiment=optimiser", "v_format=fp32"};
    CHECK((fp32("o.bytes_per_param") == 8 && fp32("o.gb") == 56));
    const OptimiserSpec blocks{.format = "e4m3", .scale = "block128"};
    CHECK((blocks.bits() == 8.25 && blocks.bytes() == 2.0625));
    CHECK(OptimiserSpec{.format = "e5m2", .scale = "block128_pow2"}.bits() == 8.0625);
    CHECK(Made{"experiment=optimiser", "v0=0"}("o.error_pct") == 0);
}

TEST_CASE("L14: below its band a format forgets nothing in a half-life, above it it is near the truth") {
    REQUIRE(cliffs().size() == 3);
    for (const Cliff& cliff : cliffs()) {
        CAPTURE(std::string(cliff.format));
        const int mantissa = find_format(cliff.format).mantissa_bits;
        const double lo = std::ldexp(1.0, -mantissa - 2), hi = std::ldexp(1.0, -mantissa - 1);
        for (const CliffPoint& point : cliff.points) {
            CAPTURE(point.step);
            const double half_life = std::max(1.0, std::round(std::log(2) / -std::log1p(-point.step)));
            if (point.step < 0.99 * lo)
                CHECK(point.ratio == doctest::Approx(std::pow(1 - point.step, -half_life)));
            if (point.step > 1.6 * hi) CHECK(near(point.ratio, 1, 0.12));
        }
    }
}

TEST_CASE("L14: what is not possible is refused with what is") {
    WideLab lab;
    CHECK_THROWS_WITH_AS(set_field(lab.fields(), "keys=100"), doctest::Contains("131072"), Error);
    CHECK_THROWS_WITH_AS(set_field(lab.fields(), "experiment=mlp"), doctest::Contains("swiglu"), Error);
    CHECK_THROWS_AS(set_field(lab.fields(), "beta2=1"), Error);
    CHECK_THROWS_AS(set_field(lab.fields(), "rho=1.5"), Error);
    for (const char* format : {"v_format=bf16", "v_format=fp32"})
        CHECK_THROWS_WITH_AS(
            set_fields(lab, std::vector<std::string>{"signal=noise", format, "v_scale=block128"}),
            doctest::Contains("one"), Error);
    lab.reset();
    CHECK_THROWS_AS(set_fields(lab, std::vector<std::string>{"v_format=e4m3", "v_scale=block128"}), Error);
    lab.reset();
    CHECK_THROWS_AS(set_fields(lab, std::vector<std::string>{"v_format=fp32", "v_round=stochastic"}), Error);
    lab.reset();
    CHECK(lab.why_not("v_scale") == "BF16 needs no scale.");
    CHECK_FALSE(lab.belongs("margin"));
    CHECK(lab.belongs("seed"));
}

TEST_CASE("L14: only the visible experiment has numbers and figures, back again they are the same") {
    WideLab lab;
    lab.update();
    const auto names = lab.metric_names();
    const auto first = lab.metrics();
    for (const char* experiment : {"attention", "swiglu", "optimiser"}) {
        CAPTURE(experiment);
        set_field(lab.fields(), std::string("experiment=") + experiment);
        lab.update();
        CHECK(lab.metric_names() == names);
        for (const Metric& metric : lab.metrics()) {
            if (metric.name == "s.saturated_at") continue;
            CAPTURE(metric.name);
            CHECK(std::isnan(metric.value) == (metric.name[0] != experiment[0]));
        }
        const auto ids = lab.figure_ids();
        for (const Figure& figure : lab.figures()) {
            CAPTURE(figure.id);
            CHECK(std::ranges::find(ids, figure.id) != ids.end());
            CHECK_FALSE(figure.title.empty());
            CHECK_FALSE(figure.series.empty());
            const Extents shown = fit(figure);
            CHECK(std::isfinite(shown.x.lo + shown.x.hi + shown.y.lo + shown.y.hi));
            for (const std::string& line : to_words(figure)) CHECK(line.find("nan") == std::string::npos);
        }
    }
    set_field(lab.fields(), "experiment=attention");
    lab.update();
    const auto again = lab.metrics();
    for (std::size_t i = 0; i < first.size(); ++i)
        CHECK((std::isnan(first[i].value) ? std::isnan(again[i].value) : first[i].value == again[i].value));
}

TEST_CASE("L14: titles say what the numbers say") {
    CHECK(timeline_title(*Made{"experiment=swiglu"}.lab->swiglu) ==
          "The weights grow 2×, the product 4×: 3 of 24 steps saturate");
    CHECK(timeline_title(*Made{"experiment=swiglu", "margin=2"}.lab->swiglu) ==
          "No step saturates: margin 2");
    CHECK(timeline_title(*Made{"experiment=swiglu", "fix=smooth"}.lab->swiglu) ==
          "No step saturates: Smooth-SwiGLU");
    CHECK(forget_title(*Made{"experiment=optimiser"}.lab->optimiser) ==
          "The average cannot forget: after 300 steps BF16 holds 1.000, not 0.741");
    CHECK(forget_title(*Made{"experiment=optimiser", "beta2=0.95"}.lab->optimiser) ==
          "BF16 follows: 1.7 % off");
    CHECK(gap_title(*Made{"experiment=optimiser"}.lab->optimiser) ==
          "The step is 0.1 % of v, half a gap 0.2 %");
    CHECK(gap_title(*Made{"experiment=optimiser", "v0=0"}.lab->optimiser) ==
          "v is 0: it has nothing to forget");
}

TEST_CASE("L14: the scaling as Transformer Engine's call, attention not in FP8") {
    const std::string delayed = Made{"experiment=swiglu", "margin=2", "history=8"}.lab->te_code();
    for (const char* part :
         {"DelayedScaling(", "margin=2", "amax_history_len=8", "fp8_dpa=False, fp8_mha=False)"})
        CHECK_MESSAGE(delayed.find(part) != std::string::npos, delayed);
    const std::string current = Made{"experiment=swiglu", "fix=current"}.lab->te_code();
    CHECK_MESSAGE(current.starts_with("Float8CurrentScaling("), current);
    CHECK(std::ranges::count(current, '(') == std::ranges::count(current, ')'));
    const test::TeSignatures te(read_text(FP8LAB_SOURCE "/tests/unit/scaling/te_signatures.json"));
    for (const std::string& code : {delayed, current})
        for (const std::string& problem : te.problems(code)) FAIL_CHECK(problem);
}

TEST_CASE("L14: the lesson's numbers are the lab's") {
    const std::set<std::string> numbers = test::lesson_numbers("wide");
    const auto states = [&](const std::string& number) {
        CAPTURE(number);
        CHECK(numbers.contains(number));
    };
    const auto rounded = [](double value, int decimals) {
        return fmt::format("{:.{}f}", std::fabs(value), decimals);
    };
    const Made attention{};
    states(rounded(attention("a.norm1.zero_pct"), 1));
    states(rounded(attention("a.norm1.lost_pct"), 1));
    states(rounded(attention("a.exp1.lost_pct"), 1));
    states(rounded(attention("a.exp448.lost_pct"), 3));
    states(rounded(attention("a.exp448.zero_pct"), 0));
    for (const char* cast : {"norm1", "exp1", "exp256", "exp448"})
        states(rounded(attention(fmt::format("a.{}.output_db", cast)), 1));
    const Made four{"sigma=1", "sink=4", "cast=exp1"}, twelve{"sigma=1", "sink=12", "cast=exp1"};
    states(rounded(four("a.zero_pct"), 0));
    states(rounded(four("a.lost_pct"), 0));
    states(rounded(twelve("a.zero_pct"), 0));
    states(rounded(twelve("a.lost_pct"), 1));
    const Made swiglu{"experiment=swiglu"};
    states(rounded(swiglu("s.over"), 1));
    states(rounded(swiglu("s.lost_l1_pct"), 1));
    states(rounded(swiglu.lab->swiglu->inliers.back().e4m3_db, 1));
    states(rounded(swiglu.lab->swiglu->inliers.back().int8_db, 1));
    const Made optimiser{"experiment=optimiser"};
    states(rounded(optimiser("o.v_end"), 3));
    states(rounded(optimiser("o.exact"), 3));
    states(rounded(Made{"experiment=optimiser", "beta2=0.95"}("o.error_pct"), 1));
}
