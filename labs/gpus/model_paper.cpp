#include "labs/gpus/model_paper.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/units.h"

namespace fp8lab::gpus {
namespace {

constexpr double kFlop = 5 * 2.0 * kRecordedRows * kLayer;  // of the five products of the recorded step
constexpr double kRead = 2, kGradient = 2, kState = 12;     // bytes per weight

struct Load {
    double memory;
    int zero;
};
Load load_of(const PaperModel& model, int gpus, double tokens) {
    const double inputs = 2.0 * model.hidden * model.layers * tokens;
    const double zero1 = model.parameters * (kRead + kGradient + kState / gpus) + inputs;
    if (zero1 <= kPaperMemory) return {zero1, 1};
    return {model.parameters * (kRead + kGradient + kState) / gpus + inputs, 3};
}

}  // namespace

PaperPoint paper_point(const PaperSpec& spec, const PaperModel& model, bool fp8, int gpus, double tokens) {
    const Parts& parts = fp8 ? spec.fp8 : spec.bf16;
    const auto [memory, zero] = load_of(model, gpus, tokens);
    const double layers = model.layers;
    const double forward = 2 * model.parameters * tokens / kFlop * (parts.gemm + parts.casts),
                 backward = 2 * forward;
    const double of_layer = model.parameters / layers;
    const double sum =
        collective_ms(spec.links.of(spec.links.reduce_scatter, gpus), spec.network, gpus, 2 * of_layer);
    const double gather =
        collective_ms(spec.links.of(spec.links.gather, gpus), spec.network, gpus, (fp8 ? 1 : 2) * of_layer);
    // What travels under the backward pass of a layer.
    const double behind = sum + (zero == 3 ? gather : 0);
    double shown = gather + (layers - 1) * std::max(0.0, gather - forward / layers);
    shown += behind + (layers - 1) * std::max(0.0, behind - backward / layers);
    PaperPoint out{.gpus = gpus, .zero = zero, .memory = memory, .tokens = tokens * gpus};
    out.network_ms = shown;
    out.step_ms =
        forward + backward + shown + parts.optimiser * model.parameters / kWeights / gpus + parts.bookkeeping;
    return out;
}

std::string PaperCurve::breaks() const {
    std::vector<std::string> out;
    const auto first = [&](std::string_view what, auto&& broken) {
        const auto found = std::ranges::find_if(points, broken);
        if (found != points.end()) out.push_back(fmt::format("{} at {}", what, group_thousands(found->gpus)));
    };
    first("memory", [](const PaperPoint& p) { return !p.fits(); });
    first("network", [](const PaperPoint& p) { return p.share_pct() > 50; });
    first("batch", [](const PaperPoint& p) { return p.tokens > kMostTokens; });
    return out.empty() ? "nothing" : fmt::format("{}", fmt::join(out, ", "));
}

Paper paper_of(const PaperSpec& spec) {
    Paper out;
    if (!spec.fp8.known() || !spec.links.known()) return out;
    for (std::size_t m = 0; m < kPaperModels.size(); ++m)
        for (const bool fp8 : {false, true}) {
            PaperCurve curve{.model = m, .fp8 = fp8};
            for (std::size_t i = 0; i < kPaperGpus.size(); ++i) {
                const int gpus = kPaperGpus.at(i);
                curve.points.at(i) = paper_point(spec, kPaperModels.at(m), fp8, gpus, spec.tokens);
                const PaperPoint fixed = paper_point(spec, kPaperModels.at(m), fp8, gpus, kMostTokens / gpus);
                if (curve.half_at == 0 && fixed.share_pct() > 50) curve.half_at = gpus;
            }
            out.curves.push_back(curve);
        }
    return out;
}

}  // namespace fp8lab::gpus
