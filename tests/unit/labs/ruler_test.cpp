// Oracles: counts and gaps written out by hand or counted over all codes one by one; the cast's statistics
// recomputed in float64 element by element.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/files/files.h"
#include "core/formats/codec.h"
#include "core/tensors/safetensors.h"
#include "labs/ruler/model.h"
#include "tests/scratch.h"
#include "tests/unit/labs/lesson_numbers.h"

using namespace fp8lab;
using namespace fp8lab::ruler;

namespace {

double number_metric(const RulerLab& lab, std::string_view name) {
    const auto metrics = lab.metrics();
    const auto it =
        std::find_if(metrics.begin(), metrics.end(), [&](const Metric& m) { return m.name == name; });
    REQUIRE_MESSAGE(it != metrics.end(), name);
    return it->value;
}

void set(RulerLab& lab, std::string_view assignment) {
    set_field(lab.fields(), assignment);
    lab.update();
}

double sum(const std::vector<double>& values) {
    double total = 0;
    for (const double value : values) total += value;
    return total;
}

std::string title(const RulerLab& lab, std::string_view id) {
    const auto figures = lab.figures();
    const auto it = std::find_if(figures.begin(), figures.end(), [&](const Figure& f) { return f.id == id; });
    REQUIRE(it != figures.end());
    return it->title;
}

}  // namespace

TEST_CASE("half of E4M3's positive values lie below 2: 63 of 126") {
    RulerLab lab;
    CHECK(number_metric(lab, "e4m3.positive_values") == 126);
    CHECK(number_metric(lab, "e4m3.values_below_half") == 63);
    CHECK(number_metric(lab, "e4m3.half_lies_below") == 2);
    CHECK(title(lab, "ruler") == "Half of E4M3’s positive values (63 of 126) are below 2");
    CHECK(number_metric(lab, "e5m2.positive_values") == 123);  // 0x01 to 0x7B
    CHECK(number_metric(lab, "e5m2.values_below_half") == 61);
    CHECK(number_metric(lab, "e5m2.half_lies_below") == 1.5);  // 0x3E, the 62nd
}

TEST_CASE("a binade of E4M3 holds 8 values, the last one 7, and the gap doubles") {
    RulerLab lab;
    const std::vector<double>& marks = lab->outcome->lanes.front().marks;
    for (int k = -6; k <= 8; ++k) {
        const Interval binade = interval(marks, std::ldexp(1.0, k), std::ldexp(1.0, k + 1));
        CAPTURE(k);
        CHECK(binade.count == (k == 8 ? 7 : 8));
        CHECK(binade.min_gap == std::ldexp(1.0, k - 3));
        CHECK(binade.max_gap == binade.min_gap);
    }
    CHECK(interval(marks, 0, 0x1p-6).count == 7);  // subnormals
    CHECK(interval(marks, 255.5, 1e9).count == 7);
    CHECK(interval(marks, 448, 449).count == 1);
    CHECK(interval(marks, 448, 449).max_gap == 0);
    CHECK(interval(marks, 449, 1e9).count == 0);
    CHECK(interval(marks, 5, 4).count == 0);
}

TEST_CASE("brushed intervals agree with counting every code of every format") {
    RulerLab lab;
    for (const FormatInfo& format : formats()) {
        if (!format.is_signed || width_bits(format) > 8) continue;
        const auto marks = positive_marks(format, 1.0);
        for (const auto& [lo, hi] :
             {std::pair{0.0, 1.0}, {0.3, 0.7}, {1.0, 6.0}, {2.0, 2.0}, {100.0, 300.0}, {0.0, 1e6}}) {
            std::vector<double> inside, all;
            for (std::uint32_t code = 0; code < (1U << width_bits(format)); ++code) {
                const auto value = static_cast<double>(decode(format, code));
                if (!std::isfinite(value) || value <= 0) continue;
                all.push_back(value);
                if (value >= lo && value < hi) inside.push_back(value);
            }
            double min_gap = 0, max_gap = 0;
            for (const double value : inside) {
                double next = INFINITY;
                for (const double other : all) next = other > value ? std::min(next, other) : next;
                if (std::isinf(next)) continue;
                min_gap = max_gap == 0 ? next - value : std::min(min_gap, next - value);
                max_gap = std::max(max_gap, next - value);
            }
            const Interval got = interval(marks, lo, hi);
            CAPTURE(format.name);
            CAPTURE(lo);
            CAPTURE(hi);
            CHECK(got.count == static_cast<std::int64_t>(inside.size()));
            CHECK(got.min_gap == min_gap);
            CHECK(got.max_gap == max_gap);
        }
    }
}

TEST_CASE("gaps that read the same are one gap in words, however the scale has rounded them") {
    RulerLab lab;
    set(lab, "scale=2.4261");  // a gap of 32 is 13.19
    lab->brush(256 / 2.4261, 448 / 2.4261);
    const Interval& brushed = lab->outcome->lanes.front().brushed;
    CHECK(brushed.max_gap == doctest::Approx(13.19).epsilon(1e-3));
    CHECK(brushed.max_gap - brushed.min_gap < 1e-9);
    for (const Figure& figure : lab.figures())
        for (const Series& series : figure.series)
            if (const auto* bracket = std::get_if<Bracket>(&series.shape))
                CHECK_MESSAGE(bracket->text.ends_with(", gap 13.19"), bracket->text);
}

TEST_CASE("the brush takes its ends in any order and counts on the axis, not on the codes") {
    RulerLab lab;
    lab->brush(256, 128);
    CHECK(lab->params.brush_lo == 128);
    CHECK(number_metric(lab, "e4m3.interval_values") == 8);
    CHECK(number_metric(lab, "e4m3.interval_max_gap") == 16);
    set(lab, "scale=2");  // the marks are at half their values: [128, 256) holds 256 to 448, at half the gap
    CHECK(number_metric(lab, "e4m3.interval_values") == 7);
    CHECK(number_metric(lab, "e4m3.interval_max_gap") == 16);
    CHECK(number_metric(lab, "e4m3.half_lies_below") == 1);
}

TEST_CASE("the notebook's fixed point misses every value finer than its step") {
    // E4M3 below 1: 55 values, of which the seven multiples of 1/8 are hit; from 1 on every value is a
    // multiple.
    CHECK(missed_by_fixed_point(find_format("e4m3")) == 48);
    // E5M2 below 1: 3 + 14 * 4 = 59 values, three multiples of 1/4.
    CHECK(missed_by_fixed_point(find_format("e5m2")) == 56);
    CHECK(missed_by_fixed_point(find_format("int8")) == 0);
    RulerLab lab;
    set(lab, "fixed_point=on");
    const auto& dots = lab->outcome->fixed_point;
    REQUIRE(dots.size() == 3584);  // 448 * 8
    for (std::size_t i = 0; i < dots.size(); ++i) CHECK(dots[i] == static_cast<double>(i + 1) / 8);
    set(lab, "first=e5m2");  // 57344 * 4 marks would be a solid line, but the axis ends with the data
    CHECK(lab->outcome->fixed_point.size() == static_cast<std::size_t>(lab->outcome->axis.hi * 4));
}

TEST_CASE("the cast of the tensor is counted as a float64 loop counts it") {
    RulerLab lab;
    for (const char* kind : {"normal", "lognormal", "uniform", "laplace"}) {
        for (const double scale : {1.0, 0.001, 3.0}) {
            set(lab, std::string("tensor=") + kind);
            set(lab, "scale=" + std::to_string(scale));
            CAPTURE(kind);
            CAPTURE(scale);
            const FormatInfo& format = find_format("e4m3");
            const std::vector<float>& tensor = lab->outcome->tensor;
            double underflow = 0, overflow = 0, normal = 0, signal = 0, noise = 0;
            for (const float x : tensor) {
                const float scaled = x * static_cast<float>(scale);
                const auto q = static_cast<double>(decode(format, encode(format, scaled)));
                const double back =
                    static_cast<double>(static_cast<float>(q) * (1.0F / static_cast<float>(scale)));
                underflow += x != 0 && q == 0;
                overflow += std::fabs(static_cast<double>(scaled)) > 464;
                normal += std::fabs(q) >= 0x1p-6 && std::fabs(static_cast<double>(scaled)) <= 464;
                signal += std::pow(static_cast<double>(x), 2);
                noise += std::pow(static_cast<double>(x) - back, 2);
            }
            const double percent = 100.0 / static_cast<double>(tensor.size());
            CHECK(number_metric(lab, "e4m3.underflow_pct") == doctest::Approx(underflow * percent));
            CHECK(number_metric(lab, "e4m3.overflow_pct") == doctest::Approx(overflow * percent));
            CHECK(number_metric(lab, "e4m3.normal_pct") == doctest::Approx(normal * percent));
            CHECK(number_metric(lab, "e4m3.sqnr_db") == doctest::Approx(10 * std::log10(signal / noise)));
        }
    }
}

TEST_CASE("the histogram counts every element that lies on the axis, and its faults add up") {
    RulerLab lab;
    for (const char* axis : {"linear", "log"}) {
        for (const char* scale : {"1", "4", "1e-6"}) {
            set(lab, std::string("axis=") + axis);
            set(lab, std::string("scale=") + scale);
            CAPTURE(axis);
            CAPTURE(scale);
            const Histogram& counts = lab->outcome->data;
            CHECK(sum(counts.all) == 16384);
            const CastStats& stats = lab->outcome->lanes.front().cast.stats;
            CHECK(sum(counts.underflow) == static_cast<double>(stats.underflow));
            CHECK(sum(counts.saturated) == static_cast<double>(stats.overflow));
            for (std::size_t i = 0; i < counts.all.size(); ++i)
                CHECK(counts.underflow[i] + counts.saturated[i] <= counts.all[i]);
        }
    }
    const std::vector<float> values = {-0.5F, 1, 1.5F, 2, 9};
    const std::vector<Fate> fates = {Fate::underflow, Fate::normal, Fate::normal, Fate::normal,
                                     Fate::saturated};
    const Histogram counts = histogram(values, fates, {0, 1, 2, 4});
    CHECK(counts.all == std::vector<double>{1, 2, 1});
    CHECK(counts.underflow == std::vector<double>{1, 0, 0});
    CHECK(counts.saturated == std::vector<double>{0, 0, 0});
}

TEST_CASE("the handle slides the ruler by exactly what it was dragged") {
    RulerLab lab;
    const double top = lab->outcome->window.hi;
    lab->slide(200, 100);
    CHECK(lab->params.scale == 2);
    CHECK(lab->outcome->window.hi == top / 2);
    CHECK(number_metric(lab, "e4m3.overflow_pct") > 0);
    CHECK(title(lab, "data").find("is beyond the end of E4M3’s ruler") != std::string::npos);
    lab->slide(100, 200);
    CHECK(lab->params.scale == 1);
    lab->slide(1, 0);
    lab->slide(-1, 2);
    CHECK(lab->params.scale == 1);
    lab->slide(1, 1e300);
    CHECK(lab->params.scale == 0x1p-24);
    const double axis = lab->outcome->axis.hi;
    lab.reset();
    lab.update();
    CHECK(lab->outcome->axis.hi == axis);  // the axis stays where the data is
}

TEST_CASE("too small a scale is nearly free for a Gaussian, too large a one is ruinous") {
    RulerLab lab;
    const double fits = number_metric(lab, "e4m3.sqnr_db");
    CHECK(fits == doctest::Approx(31.5).epsilon(0.01));
    set(lab, "scale=0.015625");
    CHECK(number_metric(lab, "e4m3.sqnr_db") == doctest::Approx(fits).epsilon(0.01));
    set(lab, "scale=8");
    CHECK(number_metric(lab, "e4m3.sqnr_db") < 10);
}

TEST_CASE("up to four formats stand under each other, each once") {
    RulerLab lab;
    set(lab, "third=int8");
    set(lab, "fourth=e4m3");
    REQUIRE(lab->outcome->lanes.size() == 3);
    CHECK(lab->outcome->lanes[2].format.name == "int8");
    CHECK(number_metric(lab, "int8.positive_values") == 127);
    CHECK(lab->outcome->lanes[0].role == Role::e4m3);
    CHECK(lab->outcome->lanes[1].role == Role::e5m2);
}

TEST_CASE("every axis, format and tensor gives finite figures with a finding as title") {
    RulerLab lab;
    for (const char* axis : {"linear", "log", "binades"}) {
        for (const FormatInfo& format : formats()) {
            if (!format.is_signed || width_bits(format) > 8) continue;
            for (const char* tensor : {"none", "normal"}) {
                CAPTURE(axis);
                CAPTURE(format.name);
                CAPTURE(tensor);
                set(lab, std::string("axis=") + axis);
                set(lab, "first=" + std::string(format.name));
                set(lab, std::string("tensor=") + tensor);
                const auto figures = lab.figures();
                CHECK(figures.size() == (std::string_view(tensor) == "none" ? 2 : 3));
                for (const Figure& figure : figures) {
                    CHECK(figure.title.size() > 10);
                    CHECK_FALSE(figure.series.empty());
                    const Extents shown = fit(figure);
                    for (const double edge : {shown.x.lo, shown.x.hi, shown.y.lo, shown.y.hi})
                        CHECK(std::isfinite(edge));
                    CHECK(shown.x.lo < shown.x.hi);
                }
            }
        }
    }
    CHECK_FALSE(lab.thumbnail().series.empty());
}

TEST_CASE("ruler: the field table reads back what it wrote and refuses what it does not know") {
    RulerLab lab;
    set(lab, "first=e2m1");
    set(lab, "scale=0.1");
    set(lab, "tensor=laplace");
    const auto state = lab.state();
    RulerLab other;
    other.restore(state);
    other.update();
    CHECK(other.state() == state);
    CHECK(other->outcome->tensor == lab->outcome->tensor);
    CHECK_THROWS_WITH_AS(set(lab, "first=e8m0"), doctest::Contains("e4m3"),
                         Error);  // a scale, not a tensor format
    CHECK_THROWS_AS(set(lab, "scale=0"), Error);
    CHECK_THROWS_AS(set(lab, "elements=17.5"), Error);
    CHECK(lab.state() == state);
    lab.reset();
    CHECK(lab.state() == RulerLab().state());
}

TEST_CASE(
    "L2: a tensor of one's own lies under the ruler: NaN and Inf as 0, of many every k-th and the largest") {
    const Scratch scratch;
    std::vector<float> values(300'000);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000) / 1000;
    values[7] = std::numeric_limits<float>::infinity(), values[8] = std::nanf(""), values[77'777] = -5000;
    write_file(
        scratch.path / "t.safetensors",
        to_safetensors({{{"few", {{4}, {1, -2, std::nanf(""), 0.5F}}}, {"many", {{300'000}, values}}}, {}}));
    RulerLab lab;
    set(lab, "file=" + (scratch / "t.safetensors") + ":few");
    CHECK(lab->outcome->tensor == std::vector<float>{1, -2, 0, 0.5F});
    CHECK(lab->outcome->excluded == Excluded{.nan = 1});
    set(lab, "file=" + (scratch / "t.safetensors") + ":many");
    CHECK(lab->outcome->tensor.size() <= (1 << 18) + 1);
    CHECK(lab->outcome->tensor.size() > 100'000);
    CHECK(lab->outcome->tensor.front() == -5000);
    for (const Figure& figure : lab.figures()) CHECK_FALSE(figure.series.empty());
    CHECK_THROWS_AS(set(lab, "file=/no/such.npy"), Error);
}

TEST_CASE("every number in the lesson of L2 is computed here") {
    RulerLab lab;
    const std::vector<double> marks = lab->outcome->lanes.front().marks;
    std::set<std::string> computed = {"0"};
    const auto add = [&](double value) { computed.insert(format_number(value)); };
    add(number_metric(lab, "e4m3.positive_values"));
    add(number_metric(lab, "e4m3.values_below_half"));
    add(number_metric(lab, "e4m3.half_lies_below"));
    add(marks.back());
    for (const double from : {128.0, 256.0}) {
        const Interval rest = interval(marks, from, 2 * from);
        add(from);
        add(static_cast<double>(rest.count));
        CHECK(rest.min_gap == rest.max_gap);
        add(rest.max_gap);
    }
    const std::vector<double> normals(marks.begin() + 7, marks.end());
    CHECK(normals.front() == 0x1p-6);  // before it: the 7 subnormals
    double largest_ratio = 0;
    for (std::size_t i = 0; i + 1 < normals.size(); ++i)
        largest_ratio = std::max(largest_ratio, (normals[i + 1] - normals[i]) / normals[i]);
    add(1 / largest_ratio);
    CHECK(marks[1] - marks[0] == marks[0]);  // among the subnormals the gap grows to the value
    add(number_metric(lab, "e4m3.missed_by_fixed_point"));
    add(1);
    for (const double value : marks)
        CHECK((value < 1 || std::floor(8 * value) == 8 * value));  // "all below 1"
    const double fits = number_metric(lab, "e4m3.sqnr_db");
    set(lab, "scale=0.015625");
    CHECK(fits - number_metric(lab, "e4m3.sqnr_db") < 0.1);
    add(1 / lab->params.scale);
    set(lab, "scale=8");
    computed.insert(format_number(number_metric(lab, "e4m3.sqnr_db"), 2));
    computed.insert(format_number(number_metric(lab, "e4m3.overflow_pct"), 2));
    for (const std::string& number : test::lesson_numbers("ruler")) {
        CAPTURE(number);
        CHECK(computed.count(number) == 1);
    }
}
