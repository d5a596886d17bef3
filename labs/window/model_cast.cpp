#include "labs/window/model_cast.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/base/parallel.h"
#include "core/scaling/delayed.h"
#include "core/scaling/quantizer.h"

namespace fp8lab::window_lab {

namespace {

constexpr std::size_t kSlices = 16;

double percentile_of(std::span<const float> values, double percent) {
    std::vector<float> sizes;
    for (const float x : values)
        if (std::isfinite(x)) sizes.push_back(std::fabs(x));
    if (sizes.empty()) return 0;
    const auto place =
        static_cast<std::ptrdiff_t>(std::lround(percent / 100 * static_cast<double>(sizes.size() - 1)));
    std::nth_element(sizes.begin(), sizes.begin() + place, sizes.end());
    return static_cast<double>(sizes[static_cast<std::size_t>(place)]);
}

double smoothed_amax(std::span<const float> values, double weight) {
    double average = 0;
    for (std::size_t i = 0; i < kSlices; ++i) {
        const std::size_t begin = values.size() * i / kSlices, end = values.size() * (i + 1) / kSlices;
        const auto largest = static_cast<double>(amax(values.subspan(begin, end - begin)));
        average = i == 0 ? largest : weight * average + (1 - weight) * largest;
    }
    return average;
}

double reference_of(const CastSpec& spec, const Tensor& tensor, const FormatInfo& format) {
    if (spec.source == "manual") return max_finite(format) / spec.scale;
    if (spec.source == "percentile") return percentile_of(tensor.values, spec.percentile);
    if (spec.source == "ema") return smoothed_amax(tensor.values, spec.ema);
    return static_cast<double>(amax(tensor.values));
}

float scale_for(const CastSpec& spec, const FormatInfo& format, double reference, int margin) {
    const auto max = static_cast<float>(max_finite(format));
    if (reference > 0 && std::isfinite(reference))
        return scale_from_amax(static_cast<float>(reference), max, margin, 1);
    if (spec.zero == "divide") return std::numeric_limits<float>::infinity();
    if (spec.zero == "eps") return scale_from_amax(1e-12F, max, margin, 1);
    return spec.zero == "keep" ? static_cast<float>(spec.scale) : 1.0F;
}

double inlier_sqnr(const Tensor& tensor, std::span<const float> q) {
    double signal = 0, noise = 0;
    auto next = tensor.outliers.begin();
    for (std::size_t i = 0; i < q.size(); ++i) {
        if (next != tensor.outliers.end() && *next == i) {
            ++next;
            continue;
        }
        const auto x = static_cast<double>(tensor.values[i]), error = x - static_cast<double>(q[i]);
        if (!std::isfinite(x)) continue;
        signal += x * x, noise += error * error;
    }
    return 10 * std::log10(signal / noise);
}

// Index of the half binade k/2 with 2^(k/2) <= |x|, from the exponent field and a comparison.
int half_binade(float x) {
    int exponent = 0;
    const float fraction = std::frexp(std::fabs(x), &exponent);  // [0.5, 1)
    return 2 * (exponent - 1) + (fraction >= std::numbers::sqrt2_v<float> / 2 ? 1 : 0);
}

Histogram histogram_of(const Tensor& tensor, const FormatInfo& format, float scale, double smallest,
                       double largest) {
    const int lo = half_binade(static_cast<float>(smallest)), hi = half_binade(static_cast<float>(largest));
    const auto bins = static_cast<std::size_t>(hi - lo + 1);
    std::vector<double> edges, all(bins), underflow(bins), saturated(bins);
    for (int k = lo; k <= hi + 1; ++k) edges.push_back(std::exp2(k / 2.0));
    const OverflowThreshold limit = overflow_threshold(format);
    for (const float x : tensor.values) {
        if (x == 0 || !std::isfinite(x)) continue;
        const int k = half_binade(x);
        if (k < lo) continue;
        const auto bin = static_cast<std::size_t>(k - lo);
        const float scaled = std::fabs(x * scale);
        const auto wide = static_cast<double>(scaled);
        all[bin] += 1;
        saturated[bin] += wide > limit.value || (limit.inclusive && wide == limit.value) ? 1 : 0;
        if (scaled < 1 || format.kind == Kind::integer)
            underflow[bin] += decode(format, encode(format, scaled)) == 0 ? 1 : 0;
    }
    Histogram out;
    out.tallest = std::max(1.0, *std::max_element(all.begin(), all.end()));
    out.edges = data(std::move(edges)), out.all = data(std::move(all));
    out.underflow = data(std::move(underflow)), out.saturated = data(std::move(saturated));
    return out;
}

Sweep sweep_of(const CastSpec& spec, const Tensor& tensor, const FormatInfo& format, double reference) {
    Sweep out{format, std::vector<Cast>(kHighestMargin - kLowestMargin + 1)};
    parallel_for(out.casts.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            const int margin = kLowestMargin + static_cast<int>(i);
            out.casts[i] =
                cast_tensor(tensor, format, Overflow::saturate, scale_for(spec, format, reference, margin));
        }
    });
    return out;
}

LossScaled loss_of(const CastSpec& spec, const Tensor& tensor, const FormatInfo& format) {
    LossScaled out;
    Tensor gradient = tensor;
    for (std::size_t i = 0; i < out.shifted.size(); ++i) {
        const int exponent = spec.loss_exponent - kBinadesApart * static_cast<int>(i);
        for (std::size_t k = 0; k < gradient.values.size(); ++k)
            gradient.values[k] = std::ldexp(tensor.values[k], exponent);
        out.shifted[i] = cast_tensor(gradient, format, Overflow::saturate, 1);
        const auto own = static_cast<double>(amax(gradient.values));
        out.scaled[i] = cast_tensor(gradient, format, Overflow::saturate, scale_for(spec, format, own, 0));
    }
    return out;
}

}  // namespace

Cast cast_tensor(const Tensor& tensor, const FormatInfo& format, Overflow overflow, float scale) {
    std::vector<float> q(tensor.values.size());
    CastPlan plan;
    plan.format = &format;
    plan.scaled = true;
    plan.overflow = overflow;
    Cast out;
    out.scale = static_cast<double>(scale);
    out.stats = quantize(plan, tensor.values, q, {.rows = 1, .cols = q.size(), .tensor_scale = scale}).stats;
    out.inlier_sqnr_db = tensor.outliers.empty() ? out.stats.sqnr_db() : inlier_sqnr(tensor, q);
    for (std::size_t i = 0; i < q.size(); ++i)
        out.not_finite += std::isfinite(tensor.values[i]) && !std::isfinite(q[i]) ? 1 : 0;
    return out;
}

Outcome Compute::operator()(const CastSpec& spec) {
    if (drawn_ != spec.tensor) {
        tensor_ = std::make_shared<Tensor>(make_tensor(spec.tensor));
        TensorSpec before = spec.tensor;
        before.outliers = 0;
        base_ = tensor_->outliers.empty() ? Tensor{} : make_tensor(before);
        drawn_ = spec.tensor;
    }
    const Tensor& tensor = *tensor_;
    Outcome out;
    out.spec = spec;
    out.tensor = tensor_;
    out.format = find_format(spec.format);
    float largest = 0, smallest = std::numeric_limits<float>::infinity();
    for (const float x : tensor.values) {
        if (x == 0 || !std::isfinite(x)) continue;
        largest = std::max(largest, std::fabs(x)), smallest = std::min(smallest, std::fabs(x));
    }
    out.amax = static_cast<double>(largest);
    // Of the data no more than the upper 48 binades.
    out.smallest = largest > 0 ? std::max(static_cast<double>(smallest), std::ldexp(out.amax, -48)) : 0;
    out.reference = reference_of(spec, tensor, out.format);
    const bool manual = spec.source == "manual";
    const float scale =
        manual ? static_cast<float>(spec.scale) : scale_for(spec, out.format, out.reference, spec.margin);
    const Overflow overflow = parse_overflow(spec.overflow);
    out.cast = cast_tensor(tensor, out.format, overflow, scale);
    const double lowest = out.format.kind == Kind::integer ? 1 : min_subnormal(out.format);
    out.window = {lowest / out.cast.scale, max_finite(out.format) / out.cast.scale};
    out.zero_to = out.window.lo / 2;
    out.normal_from = (out.format.kind == Kind::integer ? lowest : min_normal(out.format)) / out.cast.scale;
    if (largest > 0) out.histogram = histogram_of(tensor, out.format, scale, out.smallest, out.amax);
    CastSpec of_sweeps = spec;
    of_sweeps.margin = 0, of_sweeps.overflow = {}, of_sweeps.loss_exponent = 0, of_sweeps.probe = 0;
    if (swept_ != of_sweeps) {
        own_ = sweep_of(spec, tensor, out.format, out.reference);
        other_ = sweep_of(spec, tensor, find_format(spec.format == "int8" ? "e4m3" : "int8"), out.reference);
        swept_ = of_sweeps;
    }
    out.own = own_, out.other = other_;
    out.base_sqnr_db = out.cast.inlier_sqnr_db;
    if (!tensor.outliers.empty()) {
        const float fitted = scale_for(spec, out.format, static_cast<double>(amax(base_.values)), 0);
        out.base_sqnr_db = cast_tensor(base_, out.format, Overflow::saturate, fitted).stats.sqnr_db();
    }
    CastSpec of_loss{.tensor = spec.tensor,
                     .format = spec.format,
                     .zero = spec.zero,
                     .scale = spec.scale,
                     .loss_exponent = spec.loss_exponent};
    if (lost_ != of_loss) {
        loss_ = loss_of(spec, tensor, out.format);
        lost_ = of_loss;
    }
    out.loss = loss_;
    const auto cast_one = [&](double x) {
        const std::uint32_t code =
            encode(out.format, static_cast<float>(x) * scale, Rounding::nearest, overflow);
        return static_cast<double>(decode(out.format, code)) / out.cast.scale;
    };
    out.probe_cast = cast_one(spec.probe), out.probe_next = cast_one(spec.probe + 1);
    return out;
}

}  // namespace fp8lab::window_lab
