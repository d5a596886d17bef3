#include "core/base/error.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "core/base/units.h"
#include "core/figure/figure.h"
#include "core/formats/codec.h"
#include "labs/error/model.h"
#include "tests/unit/labs/lesson_numbers.h"

using namespace fp8lab;
using namespace fp8lab::error;

namespace {

double number_metric(const ErrorLab& lab, std::string_view name) {
    const auto metrics = lab.metrics();
    const auto it =
        std::find_if(metrics.begin(), metrics.end(), [&](const Metric& m) { return m.name == name; });
    REQUIRE_MESSAGE(it != metrics.end(), name);
    return it->value;
}

void set(ErrorLab& lab, std::string_view assignment) {
    set_field(lab.fields(), assignment);
    lab.update();
}

double rounded(const Rounder& rounder, double x) {
    const float in = static_cast<float>(x);
    float out = 0;
    round_all(rounder, {&in, 1}, {&out, 1}, 1);
    return static_cast<double>(out);
}

}  // namespace

// curriculum.md 2.3: "E4M3 max 5.88 % mean 2.26 %, E5M2 max 11.1 % mean 4.50 %".
TEST_CASE("a normal number is off by at most 1/17 in E4M3 and 1/9 in E5M2, on average by 2.26 and 4.50 %") {
    const ErrorLab lab;
    CHECK(number_metric(lab, "e4m3.worst_normal_pct") == doctest::Approx(100.0 / 17).epsilon(1e-12));
    CHECK(number_metric(lab, "e5m2.worst_normal_pct") == doctest::Approx(100.0 / 9).epsilon(1e-12));
    CHECK(std::fabs(number_metric(lab, "e4m3.mean_normal_pct") - 2.26) < 0.005);
    CHECK(std::fabs(number_metric(lab, "e5m2.mean_normal_pct") - 4.50) < 0.005);
}

// curriculum.md 2.3; numerics.md 6, row 1.
TEST_CASE("the notebook's stand-in is a fixed-point grid: 0.05 dies, 99.7 is better than true") {
    const Rounder e4m3 = rounder_of("e4m3"), notebook = notebook_of(find_format("e4m3"));
    CHECK(rounded(notebook, 0.05) == 0);
    CHECK(rounded(e4m3, 0.05) == doctest::Approx(0.05078125));
    CHECK(rounded(notebook, 99.7) == 99.75);
    CHECK(rounded(e4m3, 99.7) == 96);
    CHECK(rounded(notebook, 17.3) == 17.25);
    CHECK(rounded(e4m3, 17.3) == 18);
    CHECK(rounded(notebook, 300) == 240);  // and its largest value is the IEEE formula's
    CHECK(rounded(e4m3, 300) == 288);
    CHECK(notebook_max(find_format("e5m2")) == 57344);
    CHECK(std::fabs(0.05 - 0.05078125) / 0.05 == doctest::Approx(0.0156).epsilon(0.01));
    CHECK(std::fabs(99.7 - 96) / 99.7 == doctest::Approx(0.037).epsilon(0.01));
    CHECK(std::fabs(99.7 - 99.75) / 99.7 == doctest::Approx(0.0005).epsilon(0.01));
}

// curriculum.md 1.1: on randn(10000) * 10, scaled by amax, the formula makes E5M2's error 121x smaller, so
// that line 619 prints "0.0x"; bit-exact E4M3 is 2.04x better (relative L2 2.59 against 5.24 %). 121 and 2.04
// are torch's draw with seed 42: the grids differ by 57344 * 4 / (240 * 8) = 119.5.
TEST_CASE("the notebook's own exercise prints the opposite of its lesson") {
    ErrorLab lab;
    set(lab, "size=10");
    set(lab, "cols=10000");
    set(lab, "scaling=amax");
    set(lab, "overlay=notebook");
    const double e4m3 = number_metric(lab, "e4m3.rel_l2"), e5m2 = number_metric(lab, "e5m2.rel_l2");
    const double as_e4m3 = number_metric(lab, "notebook.rel_l2");
    set(lab, "first=e5m2");
    set(lab, "second=e4m3");
    const double as_e5m2 = number_metric(lab, "notebook.rel_l2");
    CHECK(std::fabs(as_e4m3 / as_e5m2 - 121) < 5);
    CHECK(std::fabs(e5m2 / e4m3 - 2.04) < 0.07);
    CHECK(std::fabs(e4m3 - 0.0259) < 0.001);
    CHECK(std::fabs(e5m2 - 0.0524) < 0.001);
}

// curriculum.md 1.6: log-normal sigma 3, E4M3 2.2 % relative L2 and 36.6 % underflow, E5M2 5.9 % and 0.02 %:
// one draw, whose largest elements decide. Over 30 seeds the same picture, with the reference's numbers
// inside.
TEST_CASE("which format is better for a log-normal tensor depends on the metric") {
    ErrorLab lab;
    set(lab, "tensor=lognormal");
    set(lab, "sigma=3");
    set(lab, "scaling=amax");
    std::vector<double> l2_e4m3, l2_e5m2, lost_e4m3, lost_e5m2;
    for (int seed = 20; seed < 50; ++seed) {
        set(lab, "seed=" + std::to_string(seed));
        l2_e4m3.push_back(number_metric(lab, "e4m3.rel_l2"));
        l2_e5m2.push_back(number_metric(lab, "e5m2.rel_l2"));
        lost_e4m3.push_back(number_metric(lab, "e4m3.underflow_pct"));
        lost_e5m2.push_back(number_metric(lab, "e5m2.underflow_pct"));
        CHECK(l2_e4m3.back() < l2_e5m2.back());
        CHECK(number_metric(lab, "e5m2.mean_rel") < number_metric(lab, "e4m3.mean_rel"));
        CHECK(table_title(*lab->outcome) == "The metrics disagree: E4M3 is better by L2, E5M2 by the mean");
    }
    const auto spans = [](const std::vector<double>& values, double published) {
        const auto [lo, hi] = std::minmax_element(values.begin(), values.end());
        CAPTURE(*lo);
        CAPTURE(*hi);
        CHECK(*lo <= published);
        CHECK(published <= *hi);
    };
    spans(l2_e4m3, 0.022);
    spans(l2_e5m2, 0.059);
    spans(lost_e4m3, 36.6);
    spans(lost_e5m2, 0.02);
}

// curriculum.md 3.3: sigma of about 2.2 and more.
TEST_CASE("mean relative error turns against E4M3 from a sigma of about 2.2 on, relative L2 never") {
    ErrorLab lab;
    set(lab, "tensor=lognormal");
    set(lab, "scaling=amax");
    const auto e5m2_wins_by_mean = [&](const char* sigma) {
        set(lab, std::string("sigma=") + sigma);
        CHECK(number_metric(lab, "e4m3.rel_l2") < number_metric(lab, "e5m2.rel_l2"));
        return number_metric(lab, "e5m2.mean_rel") < number_metric(lab, "e4m3.mean_rel");
    };
    CHECK_FALSE(e5m2_wins_by_mean("1.8"));
    CHECK(e5m2_wins_by_mean("2.4"));
    CHECK(e5m2_wins_by_mean("4"));
}

// Exercise 4: between 1.8 and 2.3.
TEST_CASE("on a Gaussian, scaled by amax, E4M3 is about twice as good in mean error") {
    ErrorLab lab;
    set(lab, "scaling=amax");
    const double ratio = number_metric(lab, "e5m2.mean_rel") / number_metric(lab, "e4m3.mean_rel");
    CHECK(ratio > 1.8);
    CHECK(ratio < 2.3);
}

TEST_CASE("the curve is what the codec does: zero on the grid, half a gap between, at every sample") {
    for (const char* format : {"e4m3", "e5m2", "e3m4", "e2m1", "int8"}) {
        CAPTURE(std::string(format));
        const Curve curve = sweep(rounder_of(format), 1, {1e-4, 1e3});
        const FormatInfo& info = find_format(format);
        REQUIRE(curve.x->size() == curve.percent->size());
        CHECK(std::is_sorted(curve.x->begin(), curve.x->end()));
        for (std::size_t i = 0; i < curve.x->size(); ++i) {
            const double x = (*curve.x)[i];
            const auto q = static_cast<double>(decode(info, encode(info, static_cast<float>(x))));
            CHECK((*curve.percent)[i] == doctest::Approx(std::max(100 * std::fabs(x - q) / x, kFloor)));
        }
        for (const CodeValue& value : positive_values(info)) {
            if (value.value < 1e-4 || value.value > 1e3) continue;
            const auto at = std::find(curve.x->begin(), curve.x->end(), value.value);
            REQUIRE(at != curve.x->end());
            CHECK((*curve.percent)[static_cast<std::size_t>(at - curve.x->begin())] == kFloor);
        }
    }
}

TEST_CASE("a scale moves the teeth along the axis and leaves their height") {
    const Curve one = sweep(rounder_of("e4m3"), 1, {1e-4, 1e3}),
                eight = sweep(rounder_of("e4m3"), 8, {1e-4, 1e3});
    CHECK(eight.largest == one.largest / 8);
    CHECK(eight.dies == one.dies / 8);
    CHECK(eight.normal.lo == one.normal.lo / 8);
    CHECK(eight.worst_pct == one.worst_pct);
    CHECK(eight.mean_pct == one.mean_pct);
}

TEST_CASE("the worst error near a number is the flat level between the cliffs and everything outside") {
    const Rounder e4m3 = rounder_of("e4m3");
    CHECK(worst_near(e4m3, 1, 1e-3) == doctest::Approx(100));
    CHECK(worst_near(e4m3, 1, 1e-6) == doctest::Approx(100));
    for (const double x : {0.05, 1.0, 17.0, 250.0})
        CHECK(worst_near(e4m3, 1, x) == doctest::Approx(100.0 / 17).epsilon(0.1));
    CHECK(worst_near(e4m3, 1, 1000) > 60);
}

TEST_CASE("the rows of a tensor are counted as a float64 loop counts them") {
    ErrorLab lab;
    set(lab, "overlay=both");
    for (const char* tensor : {"normal", "lognormal", "uniform", "laplace", "decades"}) {
        for (const char* scaling : {"one", "amax"}) {
            CAPTURE(std::string(tensor));
            CAPTURE(std::string(scaling));
            set(lab, std::string("tensor=") + tensor);
            set(lab, std::string("scaling=") + scaling);
            const Outcome& outcome = *lab->outcome;
            REQUIRE(outcome.rows.size() == 4);
            for (const Row& row : outcome.rows) {
                CAPTURE(row.rounder.id);
                std::vector<float> q(outcome.tensor.values.size());
                round_all(row.rounder, outcome.tensor.values, q, row.scale);
                double signal = 0, noise = 0, relative = 0, worst = 0, lost = 0;
                for (std::size_t i = 0; i < q.size(); ++i) {
                    const double x = static_cast<double>(outcome.tensor.values[i]),
                                 error = x - static_cast<double>(q[i]);
                    signal += x * x;
                    noise += error * error;
                    relative += std::fabs(error / x);
                    worst = std::max(worst, std::fabs(error / x));
                    lost += q[i] == 0;
                }
                const auto n = static_cast<double>(q.size());
                CHECK(row.metrics.sqnr_db == doctest::Approx(10 * std::log10(signal / noise)).epsilon(1e-5));
                CHECK(row.metrics.rel_l2 == doctest::Approx(std::sqrt(noise / signal)).epsilon(1e-5));
                CHECK(row.metrics.mean_rel == doctest::Approx(relative / n));
                CHECK(row.metrics.max_rel == doctest::Approx(worst));
                CHECK(row.metrics.underflow_pct == doctest::Approx(100 * lost / n));
                if (std::string_view(scaling) == "amax") CHECK(row.metrics.overflow_pct == 0);
            }
        }
    }
}

TEST_CASE("the histogram's faults are the first row's") {
    ErrorLab lab;
    set(lab, "tensor=lognormal");
    set(lab, "sigma=4");
    const Outcome& outcome = *lab->outcome;
    const auto sum = [](const Log2Histogram& counts) { return static_cast<double>(counts.n); };
    const double percent = 100 / sum(outcome.all);
    CHECK(sum(outcome.lost) * percent == doctest::Approx(number_metric(lab, "e4m3.underflow_pct")));
    CHECK(sum(outcome.clipped) * percent == doctest::Approx(number_metric(lab, "e4m3.overflow_pct")));
    CHECK(sum(outcome.clipped) > 0);
    CHECK(lab.figures()[1].title.find("saturates in E4M3") != std::string::npos);
}

TEST_CASE("the marker says what becomes of its number") {
    ErrorLab lab;
    set(lab, "overlay=notebook");
    set(lab, "at=99.7");
    CHECK(number_metric(lab, "e4m3.at_pct") == doctest::Approx(100 * 3.7 / 99.7));
    CHECK(number_metric(lab, "notebook.at_pct") == doctest::Approx(100 * 0.05 / 99.7).epsilon(1e-3));
    CHECK(std::isnan(number_metric(lab, "notebook.worst_normal_pct")));  // even spacing, nowhere
    CHECK(marker_text(*lab->outcome, 17) == "17 becomes 16: 5.88 % off");
    CHECK(marker_text(*lab->outcome, 0.5) == "0.5 stays 0.5: no error");
    CHECK(marker_text(*lab->outcome, 1e-4) == "1e-4 becomes 0: 100 % off");
}

TEST_CASE("blind curves carry no name, and every order comes up") {
    ErrorLab lab;
    set(lab, "blind=on");
    std::set<std::string> orders;
    for (int seed = 0; seed < 6; ++seed) {
        std::string order;
        for (const std::string_view id : blind_order(seed)) order += std::string(id) + " ";
        orders.insert(order);
    }
    CHECK(orders.size() == 6);
    set(lab, "seed=3");
    REQUIRE(lab->outcome->curves.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) CHECK(lab->outcome->curves[i].rounder.id == blind_order(3)[i]);
    const Figure figure = lab.figures()[0];
    for (const Series& series : figure.series)
        for (const char* name : {"E4M3", "E5M2", "notebook"})
            CHECK(series.name.find(name) == std::string::npos);
}

TEST_CASE("every format, overlay and tensor gives finite figures with a finding as title") {
    ErrorLab lab;
    const std::vector<Choice> formats = lab.fields()[0].choices;
    for (const Choice& format : formats)
        for (const char* overlay : {"none", "both"})
            for (const char* tensor : {"normal", "zeros", "decades"})
                for (const char* scaling : {"one", "amax"}) {
                    CAPTURE(format.id);
                    CAPTURE(std::string(tensor));
                    set(lab, "first=" + format.id);
                    set(lab, std::string("overlay=") + overlay);
                    set(lab, std::string("tensor=") + tensor);
                    set(lab, std::string("scaling=") + scaling);
                    for (const Figure& figure : lab.figures()) {
                        CHECK(figure.title.size() > 10);
                        const Extents shown = fit(figure);
                        for (const double edge : {shown.x.lo, shown.x.hi, shown.y.lo, shown.y.hi})
                            CHECK(std::isfinite(edge));
                    }
                }
    CHECK_FALSE(lab.thumbnail().series.empty());
}

TEST_CASE("a tensor of one's own that cannot be read stops the lab with the reason until it is put right") {
    ErrorLab lab;
    CHECK_THROWS_WITH_AS(set(lab, "file=/nowhere.npy"), "/nowhere.npy: No such file or directory", Error);
    CHECK_THROWS_AS(lab.update(), Error);
    set(lab, "file=");
    CHECK(number_metric(lab, "e4m3.underflow_pct") < 1);
}

TEST_CASE("in a window the lab computes apart: what it shows stays whole until the new outcome is there") {
    ErrorLab lab, inline_lab;
    std::atomic<int> wakes = 0;
    lab.set_wake([&] { ++wakes; });
    set_field(lab.fields(), "cols=300000");
    set_field(lab.fields(), "tensor=laplace");
    lab.update();
    CHECK(static_cast<std::int64_t>(lab->outcome->tensor.values.size()) == lab->outcome->all.n);
    while (lab.busy()) std::this_thread::yield();
    lab.update();
    set(inline_lab, "cols=300000");
    set(inline_lab, "tensor=laplace");
    CHECK(lab->outcome->tensor.values == inline_lab->outcome->tensor.values);
    CHECK(number_metric(lab, "e4m3.sqnr_db") == number_metric(inline_lab, "e4m3.sqnr_db"));
    while (wakes == 0) std::this_thread::yield();
}

TEST_CASE("error: the field table reads back what it wrote") {
    ErrorLab lab;
    set(lab, "first=e3m4");
    set(lab, "tensor=laplace");
    set(lab, "at=0.7");
    ErrorLab other;
    other.restore(lab.state());
    other.update();
    CHECK(other.state() == lab.state());
    CHECK(other->outcome->tensor.values == lab->outcome->tensor.values);
    lab.reset();
    CHECK(lab.state() == ErrorLab().state());
    int first = 0, more = 0;
    for (const Field& field : lab.fields())
        if (!field.info.hidden) (field.info.more ? more : first) += 1;
    CHECK(first <= 6);
    CHECK(more <= 6);
}

TEST_CASE("every number in the lesson of L3 is computed here") {
    const ErrorLab lab;
    std::set<std::string> computed = {"0", "100"};  // what becomes 0 is off by 100 %
    const auto add = [&](double value, int digits = 4) { computed.insert(format_number(value, digits)); };
    for (const char* format : {"e4m3", "e5m2"}) {
        const double worst = number_metric(lab, std::string(format) + ".worst_normal_pct");
        add(worst, 3);
        add(1), add(100 / worst);
        add(number_metric(lab, std::string(format) + ".mean_normal_pct"), 3);
    }
    add(1 / min_normal(find_format("e4m3")));
    add(max_finite(find_format("e4m3")));
    for (const std::string& number : test::lesson_numbers("error")) {
        CAPTURE(number);
        CHECK(computed.count(number) == 1);
    }
}
