#include "core/figure/ticks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "core/base/units.h"

namespace fp8lab {

namespace {

constexpr std::size_t kCap = 64;
constexpr double kMinorPx = 6;
constexpr double kLargestPlain = 65536;  // sizes of matrices and counts of tokens are read as numbers

bool in_view(const Axis& axis, double value) {
    const double unit = (axis.to_px(value) - axis.px_lo()) / (axis.px_hi() - axis.px_lo());
    return unit >= -1e-6 && unit <= 1 + 1e-6;  // the ends belong to the view in spite of rounding
}

// 10^exponent times an integer, with one rounding only.
double decimal(double integer, int exponent) {
    return exponent < 0 ? integer / std::pow(10.0, -exponent) : integer * std::pow(10.0, exponent);
}

std::vector<Tick> linear_ticks(const Axis& axis, Range range, int most) {
    int exponent = static_cast<int>(std::floor(std::log10((range.hi - range.lo) / most)));
    for (;; ++exponent)
        for (const int mantissa : {1, 2, 5}) {
            const double step = decimal(mantissa, exponent);
            const auto first = static_cast<std::int64_t>(std::ceil(range.lo / step - 1e-6));
            const auto last = static_cast<std::int64_t>(std::floor(range.hi / step + 1e-6));
            if (last - first >= most) continue;
            std::vector<Tick> out;
            for (std::int64_t i = first; i <= last; ++i) {
                const double value = decimal(static_cast<double>(i * mantissa), exponent);
                if (!in_view(axis, value)) continue;  // a log axis has no zero
                const int digits =
                    i == 0 ? 1
                           : static_cast<int>(std::floor(std::log10(std::fabs(value)) + 1e-9)) - exponent + 1;
                out.push_back({value, format_number(value, std::clamp(digits, 1, 17), true)});
            }
            return out;
        }
}

// Where the axis is broken: of both parts, none in between.
std::vector<Tick> linear_ticks(const Axis& axis, int most) {
    const Range range = axis.range();
    const auto& gap = axis.spec().gap;
    if (!gap || gap->hi <= range.lo || gap->lo >= range.hi) return linear_ticks(axis, range, most);
    std::vector<Tick> out;
    if (gap->lo > range.lo) out = linear_ticks(axis, {range.lo, gap->lo}, std::max(most - 1, 1));
    if (gap->hi < range.hi) {
        const auto beyond = linear_ticks(axis, {gap->hi, range.hi}, 1);
        out.insert(out.end(), beyond.begin(), beyond.end());
    }
    return out;
}

// base^e for e in view, times each of `parts`; every `step`-th power.
std::vector<double> powers(const Axis& axis, double base, int step, std::span<const double> parts) {
    const auto exponent_of = [&](double value) {
        return static_cast<int>(std::floor(std::log(value) / std::log(base) / step));
    };
    std::vector<double> out;
    for (int i = exponent_of(axis.range().lo); i <= exponent_of(axis.range().hi) + 1; ++i)
        for (const double part : parts) {
            const double value = part * std::pow(base, i * step);
            if (in_view(axis, value) && out.size() < kCap) out.push_back(value);
        }
    return out;
}

constexpr std::array<double, 1> kOne = {1};

std::vector<double> sparse_powers(const Axis& axis, double base, int most, std::span<const int> steps) {
    std::vector<double> values;
    for (const int step : steps) {
        const std::vector<double> denser = std::exchange(values, powers(axis, base, step, kOne));
        if (static_cast<int>(values.size()) > most) continue;
        // One power says nothing about a log axis: the ends of what was one too many do.
        if (values.size() < 2 && denser.size() > 2) values = {denser.front(), denser.back()};
        break;
    }
    return values;
}

void append_minors(std::vector<Tick>& out, const Axis& axis, double base, std::span<const double> parts) {
    const double densest = base / parts.back();  // ratio of the last minor to the next power
    const double px = std::fabs(axis.to_px(axis.range().lo * densest) - axis.px_lo());
    if (px < kMinorPx) return;
    for (const double value : powers(axis, base, 1, parts))
        if (out.size() < kCap) out.push_back({value, {}});
}

std::vector<Tick> log10_ticks(const Axis& axis, int most) {
    constexpr std::array<double, 3> kOneTwoFive = {1, 2, 5};
    constexpr std::array<double, 2> kOneThree = {1, 3};
    constexpr std::array<int, 8> kSteps = {1, 2, 3, 5, 10, 20, 50, 200};
    constexpr std::array<double, 8> kMinors = {2, 3, 4, 5, 6, 7, 8, 9};
    const auto limit = static_cast<std::size_t>(most);
    std::vector<double> values = powers(axis, 10, 1, kOneThree);
    if (values.size() < 3) values = powers(axis, 10, 1, kOneTwoFive);
    if (values.size() > limit) values = sparse_powers(axis, 10, most, kSteps);
    std::vector<Tick> out;
    for (const double value : values) out.push_back({value, format_number(value, 3, true)});
    append_minors(out, axis, 10, kMinors);
    return out;
}

std::vector<Tick> log2_ticks(const Axis& axis, int most) {
    constexpr std::array<int, 11> kSteps = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
    constexpr std::array<double, 3> kMinors = {1.25, 1.5, 1.75};
    const std::vector<double> values = sparse_powers(axis, 2, most, kSteps);
    const bool plain =
        std::all_of(values.begin(), values.end(), [](double v) { return v >= 1 && v <= kLargestPlain; });
    std::vector<Tick> out;
    for (const double value : values)
        out.push_back(
            {value, plain || value == 1 ? format_number(value, 5) : power_of_two(std::ilogb(value))});
    append_minors(out, axis, 2, kMinors);
    return out;
}

std::vector<Tick> symlog_ticks(const Axis& axis, int most) {
    const double threshold = axis.spec().linear_threshold;
    std::vector<Tick> out;
    for (int step = 1; step < 1024; step *= 2) {
        out.clear();
        const auto add = [&](double value) {
            if (in_view(axis, value) && out.size() < kCap)
                out.push_back({value, format_number(value, 3, true)});
        };
        const double reach = std::max(std::fabs(axis.range().lo), std::fabs(axis.range().hi)) / threshold;
        const int last = static_cast<int>(std::ceil(std::log10(std::max(1.0, reach))) / step) * step;
        for (int e = last; e >= 0; e -= step) add(-threshold * std::pow(10.0, e));
        add(0);
        for (int e = 0; e <= last; e += step) add(threshold * std::pow(10.0, e));
        if (static_cast<int>(out.size()) <= most) break;
    }
    return out;
}

}  // namespace

std::vector<Tick> make_ticks(const Axis& axis, int most) {
    most = std::clamp(most, 2, 16);
    std::vector<Tick> out;
    switch (axis.spec().scale) {
        case Scale::linear:
            return linear_ticks(axis, most);
        case Scale::log2:
            out = log2_ticks(axis, most);
            break;
        case Scale::log10:
            out = log10_ticks(axis, most);
            break;
        case Scale::symlog:
            out = symlog_ticks(axis, most);
            break;
    }
    const auto labels =
        std::count_if(out.begin(), out.end(), [](const Tick& tick) { return !tick.label.empty(); });
    return labels < 2 ? linear_ticks(axis, most) : out;
}

}  // namespace fp8lab
