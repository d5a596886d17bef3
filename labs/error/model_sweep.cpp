#include "labs/error/model_sweep.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/formats/codec.h"

namespace fp8lab::error {

namespace {

// Neighbours closer than this are no teeth on a screen: some are left out.
constexpr double kLeastTooth = 1.002;

// Pairs of neighbouring values of the grid (before the scale), ascending, from 0 up to beyond `end`.
std::vector<Range> teeth(const Rounder& rounder, double end) {
    std::vector<Range> out;
    if (rounder.notebook) {
        const double step = std::ldexp(1.0, -rounder.format.mantissa_bits);
        const double stop = std::min(end, rounder.largest());
        for (double value = 0; value < stop;) {
            out.push_back({value, value + step});
            value = std::max(value + step, std::floor(value * kLeastTooth / step) * step);
        }
        return out;
    }
    double before = 0;
    for (const CodeValue& value : positive_values(rounder.format)) {
        if (value.value == 0) continue;
        if (before < end) out.push_back({before, value.value});
        before = value.value;
    }
    return out;
}

struct Samples {
    std::vector<float> at;
    std::vector<double> height;  // of the tooth that the sample belongs to, relative; 0: no tooth

    void add(double x, double tooth_height, Range axis) {
        if (x < axis.lo || x > axis.hi) return;
        at.push_back(static_cast<float>(x));
        height.push_back(tooth_height);
    }
};

// Where the curve bends: dense towards the values, where it falls to 0.
void add_tooth(Samples& samples, Range tooth, double scale, Range axis) {
    static constexpr std::array kRise = {0.0, 1.0 / 64, 1.0 / 16, 1.0 / 4, 1.0 / 2, 3.0 / 4, 1.0};
    const double middle = (tooth.lo + tooth.hi) / 2, height = (middle - tooth.lo) / middle;
    for (const double part : kRise)
        if (tooth.lo > 0) samples.add((tooth.lo + part * (middle - tooth.lo)) / scale, height, axis);
    for (auto part = kRise.rbegin(); part != kRise.rend(); ++part)
        samples.add((tooth.hi - *part * (tooth.hi - middle)) / scale, height, axis);
}

void add_even(Samples& samples, double from, double to, Range axis) {
    constexpr int kPoints = 64;
    for (int i = 0; i <= kPoints; ++i) samples.add(from * std::pow(to / from, i / double{kPoints}), 0, axis);
}

std::vector<double> relative_errors(const Rounder& rounder, const std::vector<float>& at, float scale) {
    std::vector<float> rounded(at.size());
    round_all(rounder, at, rounded, scale);
    std::vector<double> out(at.size());
    for (std::size_t i = 0; i < at.size(); ++i)
        out[i] = std::fabs(static_cast<double>(at[i]) - static_cast<double>(rounded[i])) /
                 static_cast<double>(at[i]);
    return out;
}

// At scale 1: a scale moves the teeth and leaves their height.
void measure_normals(Curve& curve) {
    const Range normal = curve.rounder.normal();
    if (normal.lo >= normal.hi) return;
    std::vector<float> middles, even;
    for (const Range& tooth : teeth(curve.rounder, normal.hi))
        if (tooth.lo >= normal.lo) middles.push_back(static_cast<float>((tooth.lo + tooth.hi) / 2));
    for (const double error : relative_errors(curve.rounder, middles, 1))
        curve.worst_pct = std::max(curve.worst_pct, 100 * error);
    constexpr int kPerBinade = 512;
    const int count = static_cast<int>(kPerBinade * std::log2(normal.hi / normal.lo));
    for (int i = 0; i < count; ++i)
        even.push_back(static_cast<float>(normal.lo * std::exp2((i + 0.5) / kPerBinade)));
    double sum = 0;
    for (const double error : relative_errors(curve.rounder, even, 1)) sum += error;
    curve.mean_pct = 100 * sum / count;
}

}  // namespace

double notebook_max(const FormatInfo& format) {
    const int top = (1 << format.exponent_bits) - 2;
    return (2 - std::ldexp(1.0, -format.mantissa_bits)) *
           std::ldexp(1.0, top - ((1 << (format.exponent_bits - 1)) - 1));
}

double Rounder::largest() const { return notebook ? notebook_max(format) : max_finite(format); }

double Rounder::smallest() const {
    return notebook ? std::ldexp(1.0, -format.mantissa_bits) : min_subnormal(format);
}

OverflowThreshold Rounder::overflow() const {
    if (!notebook) return overflow_threshold(format);
    return {largest() + smallest() / 2, true};  // half a step is rounding
}

Range Rounder::normal() const {
    if (notebook || format.kind != Kind::floating) return {largest(), largest()};
    return {min_normal(format), largest()};
}

Rounder rounder_of(std::string_view format) {
    const FormatInfo& info = find_format(format);
    // Integers have no colour of their own. Here they take that of block formats, which they share no figure with.
    return {std::string(info.name), std::string(info.label),
            info.kind == Kind::integer ? Role::block : info.role, info};
}

Rounder notebook_of(const FormatInfo& format) {
    return {"notebook", "notebook’s “" + std::string(format.label) + "”", Role::under, format, true};
}

void round_all(const Rounder& rounder, std::span<const float> in, std::span<float> out, float scale) {
    if (!rounder.notebook) return quantize(rounder.format, in, out, {.scale = scale});
    const double grid = std::ldexp(1.0, rounder.format.mantissa_bits), top = rounder.largest();
    for (std::size_t i = 0; i < in.size(); ++i) {
        const double clipped = std::clamp(static_cast<double>(in[i] * scale), -top, top);
        out[i] = static_cast<float>(std::nearbyint(clipped * grid) / grid) / scale;
    }
}

Curve sweep(const Rounder& rounder, float scale, Range axis) {
    const double factor = static_cast<double>(scale);
    Curve curve;
    curve.rounder = rounder;
    curve.scale = scale;
    curve.normal = {rounder.normal().lo / factor, rounder.normal().hi / factor};
    curve.dies = rounder.smallest() / 2 / factor;  // the tie goes to 0, the even code
    curve.largest = rounder.largest() / factor;

    Samples samples;
    if (curve.dies > axis.lo) add_even(samples, axis.lo, curve.dies, axis);
    for (const Range& tooth : teeth(rounder, axis.hi * factor)) add_tooth(samples, tooth, factor, axis);
    if (curve.largest < axis.hi) add_even(samples, curve.largest, axis.hi, axis);

    const std::vector<double> errors = relative_errors(rounder, samples.at, scale);
    std::vector<double> x(errors.size()), percent(errors.size()), crests(errors.size());
    for (std::size_t i = 0; i < errors.size(); ++i) {
        x[i] = static_cast<double>(samples.at[i]);
        percent[i] = std::max(100 * errors[i], kFloor);
        const bool crest = errors[i] >= samples.height[i] / 4;
        crests[i] = crest ? percent[i] : std::numeric_limits<double>::quiet_NaN();
    }
    measure_normals(curve);
    curve.x = data(std::move(x)), curve.percent = data(std::move(percent)),
    curve.crests = data(std::move(crests));
    return curve;
}

double worst_near(const Rounder& rounder, float scale, double x) {
    const double reach = std::sqrt(2.0);
    const Curve curve = sweep(rounder, scale, {x / reach, x * reach});
    return *std::max_element(curve.percent->begin(), curve.percent->end());
}

}  // namespace fp8lab::error
