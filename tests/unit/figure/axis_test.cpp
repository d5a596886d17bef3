#include "core/figure/axis.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/figure/ticks.h"

namespace fp8lab {
namespace {

constexpr Scale kScales[] = {Scale::linear, Scale::log2, Scale::log10, Scale::symlog};

AxisSpec spec_of(Scale scale) { return {.scale = scale}; }

std::vector<std::string> labels(Scale scale, Range range, int most = 5) {
    std::vector<std::string> out;
    for (const Tick& tick : make_ticks(Axis(spec_of(scale), range, 0, 400), most))
        if (!tick.label.empty()) out.push_back(tick.label);
    return out;
}
using Labels = std::vector<std::string>;

TEST_CASE("data go to pixels and back on every scale") {
    for (const Scale scale : kScales) {
        const Axis axis(spec_of(scale), {0.5, 4000}, 100, 900);
        for (const double value : {0.5, 1.0, 3.0, 77.0, 4000.0})
            CHECK(axis.from_px(axis.to_px(value)) == doctest::Approx(value));
        CHECK(axis.to_px(0.5) == doctest::Approx(100));
        CHECK(axis.to_px(4000) == doctest::Approx(900));
    }
}

TEST_CASE("log axes are even in powers, and have no place for zero and below") {
    const Axis axis(spec_of(Scale::log2), {0.25, 4}, 0, 400);
    CHECK(axis.to_px(0.5) == doctest::Approx(100));
    CHECK(axis.to_px(2) == doctest::Approx(300));
    CHECK(std::isnan(axis.to_px(0)));
    CHECK(std::isnan(axis.to_px(-1)));
}

TEST_CASE("symlog is linear within the threshold, odd, and a decade wide beyond") {
    AxisSpec spec = spec_of(Scale::symlog);
    spec.linear_threshold = 0.5;
    CHECK(to_scale(spec, 0.25) == doctest::Approx(0.5));
    CHECK(to_scale(spec, 5) == doctest::Approx(2));
    CHECK(to_scale(spec, -5) == doctest::Approx(-2));
    CHECK(from_scale(spec, to_scale(spec, -321.0)) == doctest::Approx(-321));
}

TEST_CASE("a low log axis keeps two powers where every second one is too many and every fourth one too few") {
    CHECK(labels(Scale::log2, {0x1p-12, 0x1p9}, 2) == Labels{"2^-8", "2^8"});
    CHECK(labels(Scale::log10, {1e-4, 30}, 2).size() == 2);
}

TEST_CASE("a broken axis is even on both sides of its break, and every value has one place") {
    AxisSpec spec;
    spec.gap = AxisBreak{8, 15, 1};
    const Axis axis(spec, {4, 16}, 0, 600);  // 4 units, 1 for the break, 1
    CHECK(axis.to_px(4) == doctest::Approx(0));
    CHECK(axis.to_px(6) == doctest::Approx(200));
    CHECK(axis.to_px(8) == doctest::Approx(400));
    CHECK(axis.to_px(11.5) == doctest::Approx(450));
    CHECK(axis.to_px(15) == doctest::Approx(500));
    CHECK(axis.to_px(16) == doctest::Approx(600));
    double before = -1;
    for (double value = 4; value <= 16; value += 0.125) {
        CHECK(axis.to_px(value) > before);
        before = axis.to_px(value);
        CHECK(axis.from_px(before) == doctest::Approx(value));
    }
    Labels found;
    for (const Tick& tick : make_ticks(axis, 9)) found.push_back(tick.label);
    CHECK(found == Labels{"4", "5", "6", "7", "8", "16"});
    // A part that is zoomed into is as without a break.
    const Axis part(spec, {4, 8}, 0, 400), plain({}, {4, 8}, 0, 400);
    CHECK(part.to_px(5.3) == doctest::Approx(plain.to_px(5.3)));
    CHECK(make_ticks(part, 5).size() == make_ticks(plain, 5).size());
    CHECK(axis.zoomed(200, 0.5).lo == doctest::Approx(5));
    CHECK(axis.panned(100).hi == doctest::Approx(15));
}

TEST_CASE("panning keeps the content under the mouse, zooming the value under it") {
    for (const Scale scale : kScales) {
        const Axis axis(spec_of(scale), {1, 1000}, 0, 600);
        const double grabbed = axis.from_px(200);
        CHECK(Axis(spec_of(scale), axis.panned(37), 0, 600).to_px(grabbed) == doctest::Approx(237));
        CHECK(Axis(spec_of(scale), axis.zoomed(200, 0.1), 0, 600).to_px(grabbed) == doctest::Approx(200));
    }
}

TEST_CASE("pixels stay exact in a deep zoom far from zero") {
    const double ulp = std::nextafter(1e6, 2e6) - 1e6;
    for (const Scale scale : {Scale::linear, Scale::log10, Scale::log2}) {
        const Axis axis(spec_of(scale), {1e6, 1e6 + 64 * ulp}, 0, 640);
        for (int i = 0; i <= 64; ++i)
            CHECK(axis.to_px(1e6 + i * ulp) == doctest::Approx(10.0 * i).epsilon(1e-6));
    }
}

TEST_CASE("no gesture leaves the range of double or goes below 64 ulp") {
    for (const Scale scale : kScales) {
        Range range = {1, 10};
        for (int i = 0; i < 3000; ++i) range = Axis(spec_of(scale), range, 0, 500).zoomed(123, 0.5);
        CHECK(range.hi - range.lo >= 64 * (std::nextafter(range.hi, 2 * range.hi) - range.hi));
        for (int i = 0; i < 3000; ++i) range = Axis(spec_of(scale), range, 0, 500).zoomed(123, 2);
        CHECK(std::isfinite(range.hi - range.lo));
        for (int i = 0; i < 3000; ++i) range = Axis(spec_of(scale), range, 0, 500).panned(499);
        CHECK(range.lo < range.hi);
        CHECK(std::isfinite(Axis(spec_of(scale), range, 0, 500).from_px(250)));
    }
}

TEST_CASE(
    "a range without width becomes its centre +- the larger of 0.5 and a tenth, on log axes a factor of 2") {
    CHECK(drawable(spec_of(Scale::linear), {3, 3}) == Range{2.5, 3.5});
    CHECK(drawable(spec_of(Scale::linear), {-100, -100}) == Range{-110, -90});
    CHECK(drawable(spec_of(Scale::log2), {8, 8}) == Range{4, 16});
    CHECK(drawable(spec_of(Scale::linear), {5, 2}) == Range{2, 5});
    CHECK(std::isfinite(drawable(spec_of(Scale::linear), {std::nan(""), 2}).hi));
}

TEST_CASE("linear ticks are 1, 2 or 5 times a power of ten, exact, with just the digits they need") {
    CHECK(labels(Scale::linear, {0, 2000}) == Labels{"0", "500", "1000", "1500", "2000"});
    CHECK(labels(Scale::linear, {0, 1}, 6) == Labels{"0", "0.2", "0.4", "0.6", "0.8", "1"});
    CHECK(labels(Scale::linear, {-1, 1}) == Labels{"\u22121", "\u22120.5", "0", "0.5", "1"});
    for (const Tick& tick : make_ticks(Axis(spec_of(Scale::linear), {0, 1}, 0, 400), 11))
        CHECK(tick.value == std::stod(tick.label));  // 0.1 * 3 would be 0.30000000000000004
}

TEST_CASE("log axes label decades and powers, 1-3 or 1-2-5 where decades are few") {
    CHECK(labels(Scale::log10, {0.025, 1.2}) == Labels{"0.03", "0.1", "0.3", "1"});
    CHECK(labels(Scale::log10, {1e-4, 1e4}, 9) ==
          Labels{"1e-4", "0.001", "0.01", "0.1", "1", "10", "100", "1000", "10000"});
    CHECK(labels(Scale::log2, {std::exp2(-9), std::exp2(-5)}) ==
          Labels{"2^-9", "2^-8", "2^-7", "2^-6", "2^-5"});
    CHECK(labels(Scale::log2, {0.8, 300}) == Labels{"1", "4", "16", "64", "256"});
    CHECK(labels(Scale::log2, {64, 65536}) == Labels{"256", "4096", "65536"});
    CHECK(labels(Scale::log2, {64, 1 << 20}) == Labels{"2^8", "2^12", "2^16", "2^20"});
    CHECK(labels(Scale::symlog, {-100, 100}) == Labels{"\u2212100", "\u22121", "0", "1", "100"});
}

TEST_CASE("a log axis zoomed into less than a decade still has labels") {
    for (const Scale scale : {Scale::log2, Scale::log10, Scale::symlog})
        for (const Range range : {Range{101000, 102000}, Range{3, 4.5}, Range{1.0000001, 1.0000002}}) {
            CAPTURE(range.lo);
            CHECK(labels(scale, range).size() >= 2);
        }
}

TEST_CASE("ticks end, differ and stay in view at the narrowest and widest ranges") {
    const double ulp = std::nextafter(1e6, 2e6) - 1e6;
    for (const Scale scale : kScales)
        for (const Range range :
             {Range{1e6, 1e6 + ulp}, Range{1e6, 1e6 + 64 * ulp}, Range{1e-300, 1e300}, Range{0, 1e-290},
              Range{-1e300, 1e300}, Range{1e300, 1e300}, Range{1e-290, 2e-290}, Range{-5, 1e-9}})
            for (const int most : {2, 5, 9}) {
                CAPTURE(static_cast<int>(scale));
                CAPTURE(range.lo);
                CAPTURE(range.hi);
                const Axis axis(spec_of(scale), range, 0, 300);
                const std::vector<Tick> ticks = make_ticks(axis, most);
                CHECK(ticks.size() <= 64);
                std::string last;
                for (const Tick& tick : ticks) {
                    CHECK(axis.to_px(tick.value) >= -1);
                    CHECK(axis.to_px(tick.value) <= 301);
                    if (tick.label.empty()) continue;
                    CHECK(tick.label != last);
                    last = tick.label;
                }
            }
}

TEST_CASE("minor ticks appear only where they are 6 px apart") {
    const auto minors = [](double px) {
        int count = 0;
        for (const Tick& tick : make_ticks(Axis(spec_of(Scale::log2), {1, 16}, 0, px), 5))
            count += tick.label.empty();
        return count;
    };
    CHECK(minors(400) == 12);  // three in each of four octaves; the closest two are 0.19 octaves apart
    CHECK(minors(110) == 0);
}

}  // namespace
}  // namespace fp8lab
