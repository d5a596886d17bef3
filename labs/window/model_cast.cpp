#include "labs/window/model_cast.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "core/scaling/delayed.h"
#include "core/scaling/quantizer.h"
#include "core/threads/parallel.h"

namespace fp8lab::window {

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

// A tensor as the casts read it: 0 in the places of its outliers, and these apart. So one cast says what
// happens to the inliers, and, with the few outliers, to all of it.
struct Split {
    std::vector<float> kept, outliers;
    std::span<const float> inliers;
    explicit Split(const Tensor& tensor) : inliers(tensor.values) {
        if (tensor.outliers.empty()) return;
        kept = tensor.values;
        for (const std::size_t at : tensor.outliers) outliers.push_back(std::exchange(kept[at], 0.0F));
        inliers = kept;
    }
};

// A cast of the tensor times `level`, a power of two.
struct Wanted {
    const FormatInfo* format;
    float scale, level = 1;
    Overflow overflow = Overflow::saturate;
};

// Whether no finite element can become anything else.
bool stays_finite(const Wanted& wanted) {
    return wanted.overflow == Overflow::saturate && std::isfinite(wanted.scale) &&
           std::isfinite(static_cast<float>(max_finite(*wanted.format)) * (1 / wanted.scale));
}

struct Part {
    CastStats stats;
    std::int64_t not_finite = 0;
};

Part cast_part(const Wanted& wanted, std::span<const float> x, std::vector<float>& scaled,
               std::vector<float>& q) {
    scaled.resize(x.size()), q.resize(x.size());
    if (wanted.level != 1) {
        for (std::size_t i = 0; i < x.size(); ++i) scaled[i] = x[i] * wanted.level;
        x = scaled;
    }
    CastPlan plan;
    plan.format = wanted.format;
    plan.scaled = true;
    plan.overflow = wanted.overflow;
    Part out;
    out.stats = quantize(plan, x, q, {.rows = 1, .cols = q.size(), .tensor_scale = wanted.scale}).stats;
    if (!stays_finite(wanted))
        for (std::size_t i = 0; i < q.size(); ++i)
            out.not_finite += std::isfinite(x[i]) && !std::isfinite(q[i]) ? 1 : 0;
    return out;
}

// All casts of a piece of the tensor while it is in the cache. Sums do not depend on the number of threads:
// the pieces are fixed.
std::vector<Cast> casts_of(const Split& tensor, std::span<const Wanted> wanted) {
    constexpr std::size_t kPiece = 65536;
    const std::size_t size = tensor.inliers.size(), pieces = (size + kPiece - 1) / kPiece;
    std::vector<Part> parts(pieces * wanted.size());
    parallel_for(pieces, 1, [&](std::size_t begin, std::size_t end) {
        std::vector<float> scaled, q;
        for (std::size_t piece = begin; piece < end; ++piece) {
            const auto x = tensor.inliers.subspan(piece * kPiece, std::min(kPiece, size - piece * kPiece));
            for (std::size_t i = 0; i < wanted.size(); ++i)
                parts[piece * wanted.size() + i] = cast_part(wanted[i], x, scaled, q);
        }
    });
    std::vector<Cast> out(wanted.size());
    std::vector<float> scaled, q;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        out[i].scale = static_cast<double>(wanted[i].scale);
        const auto add = [&](const Part& part) {
            out[i].stats += part.stats;
            out[i].not_finite += part.not_finite;
        };
        for (std::size_t piece = 0; piece < pieces; ++piece) add(parts[piece * wanted.size() + i]);
        out[i].inlier_sqnr_db = out[i].stats.sqnr_db();
        if (tensor.outliers.empty()) continue;
        add(cast_part(wanted[i], tensor.outliers, scaled, q));
        // A scale of Inf makes NaN of the zeros in their places too.
        const std::vector<float> places(tensor.outliers.size());
        out[i].not_finite -= cast_part(wanted[i], places, scaled, q).not_finite;
        out[i].stats.n = static_cast<std::int64_t>(size);
    }
    return out;
}

// Index of the half binade k/2 with 2^(k/2) <= |x|, from the exponent field and a comparison.
int half_binade(float x) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x) & 0x7FFF'FFFF;
    if (bits >= 0x0080'0000) {
        constexpr auto kRoot = std::bit_cast<std::uint32_t>(std::numbers::sqrt2_v<float>) & 0x7F'FFFF;
        return 2 * (static_cast<int>(bits >> 23) - 127) + ((bits & 0x7F'FFFF) >= kRoot ? 1 : 0);
    }
    int exponent = 0;                                            // a subnormal number
    const float fraction = std::frexp(std::fabs(x), &exponent);  // [0.5, 1)
    return 2 * (exponent - 1) + (fraction >= std::numbers::sqrt2_v<float> / 2 ? 1 : 0);
}

// The largest number that the format makes 0, found in the order of the bits, which is that of the numbers.
float largest_lost(const FormatInfo& format) {
    std::uint32_t lost = 0, kept = std::bit_cast<std::uint32_t>(static_cast<float>(max_finite(format)));
    while (kept - lost > 1) {
        const std::uint32_t middle = lost + (kept - lost) / 2;
        (decode(format, encode(format, std::bit_cast<float>(middle))) == 0 ? lost : kept) = middle;
    }
    return std::bit_cast<float>(lost);
}

Histogram histogram_of(const Tensor& tensor, const FormatInfo& format, float scale, double smallest,
                       double largest) {
    const int lo = half_binade(static_cast<float>(smallest)), hi = half_binade(static_cast<float>(largest));
    const auto bins = static_cast<std::size_t>(hi - lo + 1);
    std::vector<double> edges, all(bins), underflow(bins), saturated(bins);
    for (int k = lo; k <= hi + 1; ++k) edges.push_back(std::exp2(k / 2.0));
    const OverflowThreshold limit = overflow_threshold(format);
    const float lost = largest_lost(format);
    for (const float x : tensor.values) {
        if (x == 0 || !std::isfinite(x)) continue;
        const int k = half_binade(x);
        if (k < lo) continue;
        const auto bin = static_cast<std::size_t>(k - lo);
        const float scaled = std::fabs(x * scale);
        all[bin] += 1;
        saturated[bin] += limit.is_passed_by(static_cast<double>(scaled)) ? 1 : 0;
        underflow[bin] += scaled <= lost ? 1 : 0;
    }
    Histogram out;
    out.tallest = std::max(1.0, *std::max_element(all.begin(), all.end()));
    out.edges = data(std::move(edges)), out.all = data(std::move(all));
    out.underflow = data(std::move(underflow)), out.saturated = data(std::move(saturated));
    return out;
}

// What other margins would do, in both formats.
void make_sweeps(const CastSpec& spec, const Split& tensor, double reference, Sweep& own, Sweep& other) {
    std::vector<Wanted> wanted;
    for (const Sweep* sweep : {&own, &other})
        for (int margin = kLowestMargin; margin <= kHighestMargin; ++margin)
            wanted.push_back({&sweep->format, scale_for(spec, sweep->format, reference, margin)});
    const std::vector<Cast> casts = casts_of(tensor, wanted);
    const auto middle = casts.begin() + static_cast<std::ptrdiff_t>(casts.size() / 2);
    own.casts.assign(casts.begin(), middle);
    other.casts.assign(middle, casts.end());
}

LossScaled loss_of(const CastSpec& spec, const Split& tensor, const FormatInfo& format, float largest) {
    LossScaled out;
    std::vector<Wanted> wanted;
    for (std::size_t i = 0; i < out.shifted.size(); ++i) {
        const float level = std::ldexp(1.0F, spec.loss_exponent - kBinadesApart * static_cast<int>(i));
        const auto own = static_cast<double>(largest * level);
        wanted.push_back({&format, 1, level});
        wanted.push_back({&format, scale_for(spec, format, own, 0), level});
    }
    const std::vector<Cast> casts = casts_of(tensor, wanted);
    for (std::size_t i = 0; i < out.shifted.size(); ++i)
        out.shifted[i] = casts[2 * i], out.scaled[i] = casts[2 * i + 1];
    return out;
}

}  // namespace

Cast cast_tensor(const Tensor& tensor, const FormatInfo& format, Overflow overflow, float scale) {
    const Wanted wanted{.format = &format, .scale = scale, .overflow = overflow};
    return casts_of(Split(tensor), std::array{wanted}).front();
}

// The outliers are put into the tensor without them, which stays when only they change.
void Compute::draw(const TensorSpec& spec) {
    TensorSpec before = spec;
    before.outliers = 0, before.outlier_ratio = TensorSpec().outlier_ratio;
    if (base_drawn_ != before) {
        base_ = std::make_shared<const Tensor>(make_tensor(before));
        base_drawn_ = before;
    }
    tensor_ = base_;
    if (spec.outliers > 0) {
        auto tensor = std::make_shared<Tensor>(*base_);
        put_outliers(spec, *tensor);
        tensor_ = std::move(tensor);
    }
    drawn_ = spec;
}

Outcome Compute::operator()(const CastSpec& spec) {
    if (drawn_ != spec.tensor) draw(spec.tensor);
    const Tensor& tensor = *tensor_;
    const Split split(tensor);
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
    // The axis shows at most the upper 48 binades of the data.
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
        own_.format = out.format, other_.format = find_format(spec.format == "int8" ? "e4m3" : "int8");
        make_sweeps(spec, split, out.reference, own_, other_);
        swept_ = of_sweeps;
    }
    out.own = own_, out.other = other_;
    out.base_sqnr_db = out.cast.inlier_sqnr_db;
    if (!tensor.outliers.empty()) {
        const float fitted = scale_for(spec, out.format, static_cast<double>(amax(base_->values)), 0);
        out.base_sqnr_db = cast_tensor(*base_, out.format, Overflow::saturate, fitted).stats.sqnr_db();
    }
    CastSpec of_loss{.tensor = spec.tensor,
                     .format = spec.format,
                     .zero = spec.zero,
                     .scale = spec.scale,
                     .loss_exponent = spec.loss_exponent};
    if (lost_ != of_loss) {
        loss_ = loss_of(spec, split, out.format, amax(tensor.values));
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

}  // namespace fp8lab::window
