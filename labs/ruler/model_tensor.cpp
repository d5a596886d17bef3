#include "labs/ruler/model_tensor.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/formats/codec.h"
#include "core/threads/parallel.h"

namespace fp8lab::ruler {

CastReport cast_report(const FormatInfo& format, std::span<const float> values, double scale) {
    CastReport out;
    if (values.empty()) return out;
    CastOptions options;
    options.scale = static_cast<float>(scale);
    std::vector<std::uint8_t> codes(values.size());
    std::vector<float> back(values.size());
    encode(format, values, codes, options);
    quantize(format, values, back, options);

    std::array<CodeClass, 256> classes{};
    for (std::uint32_t code = 0; code < (1U << width_bits(format)); ++code)
        classes[code] = classify(format, code);
    const OverflowThreshold limit = overflow_threshold(format);

    out.fates.reserve(values.size());
    std::int64_t normal = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto x = static_cast<double>(values[i]), q = static_cast<double>(back[i]);
        const auto scaled = static_cast<double>(std::fabs(values[i] * options.scale));
        Fate fate = Fate::normal;
        if (limit.is_passed_by(scaled))
            fate = Fate::saturated;
        else if (classes[codes[i]] == CodeClass::subnormal)
            fate = Fate::subnormal;
        else if (classes[codes[i]] == CodeClass::zero)
            fate = x == 0 ? Fate::zero : Fate::underflow;
        out.fates.push_back(fate);
        normal += fate == Fate::normal;
        out.stats.underflow += fate == Fate::underflow;
        out.stats.overflow += fate == Fate::saturated;
        out.stats.signal += x * x;
        out.stats.noise += (x - q) * (x - q);
        if (std::isfinite(x)) out.stats.mass.add(x, fate == Fate::underflow);
    }
    out.stats.n = static_cast<std::int64_t>(values.size());
    out.stats.amax = amax(values);
    out.normal_pct = 100.0 * static_cast<double>(normal) / static_cast<double>(values.size());
    return out;
}

Histogram histogram(std::span<const float> values, std::span<const Fate> fates, std::vector<double> edges) {
    Histogram out;
    const std::size_t bins = edges.size() - 1;
    out.all.resize(bins);
    out.underflow.resize(bins);
    out.saturated.resize(bins);
    // Pieces counted apart: whole numbers, whose sum does not depend on the order.
    constexpr std::size_t kPiece = 32768;
    const std::size_t pieces = (values.size() + kPiece - 1) / kPiece;
    using Counts = std::vector<std::array<double, 3>>;  // all, underflow, saturated
    std::vector<Counts> counts(pieces, Counts(bins));
    parallel_for(pieces, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin * kPiece; i < std::min(values.size(), end * kPiece); ++i) {
            const auto x = static_cast<double>(std::fabs(values[i]));
            const auto above = std::upper_bound(edges.begin(), edges.end(), x);
            if (above == edges.begin() || above == edges.end()) continue;
            auto& [all, underflow, saturated] =
                counts[i / kPiece][static_cast<std::size_t>(above - edges.begin()) - 1];
            all += 1;
            underflow += fates[i] == Fate::underflow;
            saturated += fates[i] == Fate::saturated;
        }
    });
    for (const Counts& piece : counts)
        for (std::size_t bin = 0; bin < bins; ++bin) {
            out.all[bin] += piece[bin][0];
            out.underflow[bin] += piece[bin][1];
            out.saturated[bin] += piece[bin][2];
        }
    out.edges = std::move(edges);
    return out;
}

}  // namespace fp8lab::ruler
